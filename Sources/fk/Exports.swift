// It uses declarations of the engine, which FKCore keeps from applications, in most of its files.
@_exported import FKEngine
