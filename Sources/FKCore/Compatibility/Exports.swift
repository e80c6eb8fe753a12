// One import is enough for a program in FKDownloader's way.
@_exported import FKCore
