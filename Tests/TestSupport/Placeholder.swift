import FKCore
