#ifndef FK_CLIBCRYPTO_SHIM_H
#define FK_CLIBCRYPTO_SHIM_H
#include <openssl/evp.h>
#endif
