#ifndef FK_CLIBWEBSOCKETS_SHIM_H
#define FK_CLIBWEBSOCKETS_SHIM_H
#include <libwebsockets.h>

/* Macros that Swift does not import. */
static const uint64_t fk_lws_option_tls = LWS_SERVER_OPTION_DO_SSL_GLOBAL_INIT;
static const uint64_t fk_lws_option_no_canonical_name = LWS_SERVER_OPTION_SKIP_SERVER_CANONICAL_NAME;
static const uint64_t fk_lws_option_only_raw = LWS_SERVER_OPTION_ONLY_RAW;
static const uint64_t fk_lws_option_must_bind = LWS_SERVER_OPTION_FAIL_UPON_UNABLE_TO_BIND;
/* Bytes in front of each buffer that is written, for the head of a frame. */
static const size_t fk_lws_pre = LWS_PRE;

#endif
