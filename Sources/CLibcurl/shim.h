#ifndef FK_CLIBCURL_SHIM_H
#define FK_CLIBCURL_SHIM_H
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>
#include <curl/curl.h>

/* Swift cannot call variadic C functions, so each argument type of libcurl's has a wrapper. */
typedef size_t (*fk_data_callback)(char *bytes, size_t size, size_t count, void *context);
typedef int (*fk_progress_callback)(void *context, curl_off_t, curl_off_t, curl_off_t, curl_off_t);
typedef int (*fk_request_callback)(void *context, char *peer, char *local, int peer_port, int local_port);

static inline CURLcode fk_easy_set_long(CURL *easy, CURLoption option, long value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode fk_easy_set_offset(CURL *easy, CURLoption option, curl_off_t value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode fk_easy_set_string(CURL *easy, CURLoption option, const char *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode fk_easy_set_pointer(CURL *easy, CURLoption option, void *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode fk_easy_set_list(CURL *easy, CURLoption option, struct curl_slist *value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode fk_easy_set_data_callback(CURL *easy, CURLoption option, fk_data_callback value) {
    return curl_easy_setopt(easy, option, value);
}
static inline CURLcode fk_easy_set_request_callback(CURL *easy, fk_request_callback value) {
    return curl_easy_setopt(easy, CURLOPT_PREREQFUNCTION, value);
}
static inline CURLcode fk_easy_set_progress_callback(CURL *easy, fk_progress_callback value) {
    return curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, value);
}
static inline CURLcode fk_easy_get_long(CURL *easy, CURLINFO info, long *value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode fk_easy_get_offset(CURL *easy, CURLINFO info, curl_off_t *value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode fk_easy_get_list(CURL *easy, CURLINFO info, struct curl_slist **value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode fk_easy_get_string(CURL *easy, CURLINFO info, char **value) {
    return curl_easy_getinfo(easy, info, value);
}
static inline CURLcode fk_easy_get_pointer(CURL *easy, CURLINFO info, char **value) {
    return curl_easy_getinfo(easy, info, value);
}
/* Returns whether the connection of an ended transfer stays open for others. Call it before the handle leaves its multi handle. */
static inline int fk_easy_keeps_connection(CURL *easy) {
    curl_socket_t socket = CURL_SOCKET_BAD;
    return curl_easy_getinfo(easy, CURLINFO_ACTIVESOCKET, &socket) == CURLE_OK && socket != CURL_SOCKET_BAD;
}
typedef int (*fk_debug_callback)(CURL *easy, curl_infotype type, char *bytes, size_t size, void *context);
static inline CURLcode fk_easy_set_debug_callback(CURL *easy, fk_debug_callback value) {
    return curl_easy_setopt(easy, CURLOPT_DEBUGFUNCTION, value);
}
static inline CURLMcode fk_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}
typedef int (*fk_socket_callback)(CURL *easy, curl_socket_t socket, int what, void *context, void *socket_context);
typedef int (*fk_timer_callback)(CURLM *multi, long milliseconds, void *context);
/* Sets the callbacks of the event interface (`curl_multi_socket_action`); NULL removes them. */
static inline void fk_multi_set_events(CURLM *multi, fk_socket_callback sockets, fk_timer_callback timer, void *context) {
    curl_multi_setopt(multi, CURLMOPT_SOCKETFUNCTION, sockets);
    curl_multi_setopt(multi, CURLMOPT_SOCKETDATA, context);
    curl_multi_setopt(multi, CURLMOPT_TIMERFUNCTION, timer);
    curl_multi_setopt(multi, CURLMOPT_TIMERDATA, context);
}
static inline CURLSHcode fk_share_sessions(CURLSH *share) {
    return curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_SSL_SESSION);
}

/* Options whose names depend on the libcurl version at compile time. The library at run time may be older than the headers: it
   answers with CURLE_UNKNOWN_OPTION. */
static inline CURLcode fk_easy_set_http_only(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075500
    if (curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK) return CURLE_OK;
#endif
    /* CURLOPT_PROTOCOLS, which later headers call deprecated. */
    return curl_easy_setopt(easy, (CURLoption)(CURLOPTTYPE_LONG + 181), (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
}
/* Ends a transfer without waiting for a name lookup that is still running in a thread of libcurl. */
static inline CURLcode fk_easy_set_quick_exit(CURL *easy) {
#if LIBCURL_VERSION_NUM >= 0x075700
    return curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
#else
    (void)easy;
    return CURLE_OK;
#endif
}
/* The built-in path of this libcurl's file of trusted authorities, or NULL. */
static inline const char *fk_easy_default_ca_file(CURL *easy) {
    char *file = NULL;
#if LIBCURL_VERSION_NUM >= 0x075400
    curl_easy_getinfo(easy, CURLINFO_CAINFO, &file);
#else
    (void)easy;
#endif
    return file;
}

/* What the opening of a socket needs and finds out. */
struct fk_socket_opening {
    /* The error number of a failure, which libcurl itself does not report; 0 without one. */
    int error;
    /* Returns whether a socket to the address may be opened; NULL allows all. */
    int (*may)(void *context, const struct sockaddr *address);
    void *context;
    /* The last sockets that were opened: several compete where a host has several addresses. */
    int opened[4];
    unsigned count;
};
static inline curl_socket_t fk_open_socket(void *context, curlsocktype purpose, struct curl_sockaddr *address) {
    (void)purpose;
    struct fk_socket_opening *opening = (struct fk_socket_opening *)context;
    if (opening->may != NULL && !opening->may(opening->context, &address->addr)) return CURL_SOCKET_BAD;
    curl_socket_t descriptor = socket(address->family, address->socktype, address->protocol);
    if (descriptor == CURL_SOCKET_BAD) opening->error = errno;
    else opening->opened[opening->count++ % 4] = descriptor;
    return descriptor;
}
/* The local port of a socket; 0 if it has none, or if the descriptor is no socket any more. */
static inline int fk_local_port(int descriptor) {
    struct sockaddr_storage address;
    socklen_t length = sizeof address;
    if (getsockname(descriptor, (struct sockaddr *)&address, &length) != 0) return 0;
    if (address.ss_family == AF_INET) return ntohs(((struct sockaddr_in *)&address)->sin_port);
    if (address.ss_family == AF_INET6) return ntohs(((struct sockaddr_in6 *)&address)->sin6_port);
    return 0;
}
/* The opened socket with a local port; -1 if none has it. */
static inline int fk_opened_socket(const struct fk_socket_opening *opening, int port) {
    const unsigned known = opening->count < 4 ? opening->count : 4;
    for (unsigned index = 0; index < known; index++)
        if (fk_local_port(opening->opened[index]) == port) return opening->opened[index];
    return -1;
}
static inline void fk_easy_set_open_socket(CURL *easy, struct fk_socket_opening *opening) {
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETFUNCTION, fk_open_socket);
    curl_easy_setopt(easy, CURLOPT_OPENSOCKETDATA, opening);
}

/* Keeps child processes from inheriting sockets. */
static inline int fk_close_on_exec(void *context, curl_socket_t descriptor, curlsocktype purpose) {
    (void)context;
    (void)purpose;
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    return CURL_SOCKOPT_OK;
}
static inline CURLcode fk_easy_set_close_on_exec(CURL *easy) {
    return curl_easy_setopt(easy, CURLOPT_SOCKOPTFUNCTION, fk_close_on_exec);
}

/* Calls a function of OpenSSL that takes the connection alone; -1 without one. It is looked up at run time, because only libcurl knows which
   TLS library it uses. */
static inline int fk_easy_call_openssl(CURL *easy, const char *name) {
    struct curl_tlssessioninfo *session = NULL;
    if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == NULL) return -1;
    if (session->backend != CURLSSLBACKEND_OPENSSL || session->internals == NULL) return -1;
#ifdef RTLD_DEFAULT
    void *symbol = dlsym(RTLD_DEFAULT, name);
#else
    void *symbol = dlsym(NULL, name);
#endif
    return symbol == NULL ? -1 : ((int (*)(const void *))symbol)(session->internals);
}

/* Returns whether the server has ended the TLS stream of a running transfer with close_notify (RFC 8446 section 6.1): 1 yes,
   0 no, -1 unknown. With OpenSSL before 3.2, libcurl itself takes a truncated stream for a complete one. Call it from a
   callback. */
static inline int fk_easy_saw_close_notify(CURL *easy) {
    const int received_shutdown = 2;
    const int shutdown = fk_easy_call_openssl(easy, "SSL_get_shutdown");
    return shutdown < 0 ? -1 : (shutdown & received_shutdown) != 0;
}

/* Returns whether the connection of a transfer has something to read before its request is sent: bytes of the server that belong to no
   answer, or its end. libcurl before 8.1 takes such bytes for the answer, and reads no more of a body than its Content-Length, so that
   the rest stays in the socket or in the TLS library. Call it from the callback of CURLOPT_PREREQFUNCTION. */
static inline int fk_easy_has_input(CURL *easy, int descriptor) {
    char byte;
    if (recv(descriptor, &byte, 1, MSG_PEEK | MSG_DONTWAIT) >= 0) return 1;
    return fk_easy_call_openssl(easy, "SSL_has_pending") > 0;
}
#endif
