"""The quantities that colours show. Each is one :class:`~.quantity.Quantity`; the registry is ``choices.COLOURS``."""
