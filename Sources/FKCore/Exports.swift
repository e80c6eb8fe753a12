/// Control, Messager and Builder take and return task ids, so who imports FKCore alone can name their type.
@_exported import struct FKMiddleware.TaskID
