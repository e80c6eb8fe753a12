// Who imports FKCore alone can name the types of its interface. Lists are FKManifests, which an application imports by itself.
@_exported import FKEngine
