"""The quantities that colours show. Each is one :class:`~.quantity.ColourQuantity`; the registry is ``choices.COLOURS``."""
