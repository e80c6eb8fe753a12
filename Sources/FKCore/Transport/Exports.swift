/// The types of its interface, so that importers of this target can name them.
@_exported import FKModel
