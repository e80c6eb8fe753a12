// libcurl 7.76: it does not know what came later. Each option and each information has one argument, a word long.

#include <string.h>

static void *real(const char *name) {
    void *symbol = dlsym(handle, name);
    if (!symbol) abort();
    return symbol;
}

// The last option of 7.76 is CURLOPT_DOH_SSL_VERIFYSTATUS, 308. 48 is CURLE_UNKNOWN_OPTION.
int curl_easy_setopt(void *easy, int option, void *value) {
    if (option % 10000 > 308) return 48;
    return ((int (*)(void *, int, ...))real("curl_easy_setopt"))(easy, option, value);
}

// The last information of 7.76 is CURLINFO_REFERER, 60. 43 is CURLE_BAD_FUNCTION_ARGUMENT.
int curl_easy_getinfo(void *easy, int info, void *value) {
    if ((info & 0xfffff) > 60) return 43;
    return ((int (*)(void *, int, ...))real("curl_easy_getinfo"))(easy, info, value);
}

const char *curl_version(void) { return "libcurl/7.76.1"; }

// Age, version as text, version as number, host, features: the beginning of curl_version_info_data.
struct version { int age; const char *text; unsigned number; const char *host; int features; const char *rest[64]; };

void *curl_version_info(int age) {
    static struct version old;
    memcpy(&old, ((void *(*)(int))real("curl_version_info"))(age), 96);
    old.text = "7.76.1";
    old.number = 0x074c01;
    return &old;
}
