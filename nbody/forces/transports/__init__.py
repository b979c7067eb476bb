"""Who computes the parts of a force evaluation: the GPUs of this process, or one of each rank. An engine on a GPU gives each
part to its state's :class:`~nbody.state.partition.ForceTransport`, so that the bits do not depend on their number."""
