"""The functions of other packages over this one's, so that swapping an import is enough."""
