/* SPDX-License-Identifier: Apache-2.0 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "src/export/curl.h"
#include "util/cleanup.h"

int curl_api_load(struct curl_api *ret, char *error, size_t n_error)
{
	/* The ABI is the same whichever TLS library stands behind it. */
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
	static const struct {
		const char *name;
		size_t offset;
	} functions[] = {
#define CURL_ROW(name) {"curl_" #name, offsetof(struct curl_api, name)},
		CURL_FUNCTIONS(CURL_ROW)
#undef CURL_ROW
	};
	struct curl_api api;
	void *library = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		(void)snprintf(
			error, n_error,
			"libcurl.so.4 is needed to export, and cannot be loaded: install the "
			"libcurl package of this system (%s)",
			dlerror());
		return -ENOENT;
	}
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		void *f = dlsym(library, functions[i].name);

		if (!f) {
			(void)snprintf(error, n_error,
				       "the libcurl of this system is too old: it has no %s",
				       functions[i].name);
			return -ENOENT;
		}
		memcpy((char *)&api + functions[i].offset, &f, sizeof(f));
	}
	if (api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		(void)snprintf(error, n_error, "libcurl cannot be initialised");
		return -EIO;
	}
	*ret = api;
	return 0;
}

CURLcode curl_api_set_protocols(const struct curl_api *api, CURL *easy)
{
	CURLcode r = CURLE_UNKNOWN_OPTION;

#if LIBCURL_VERSION_NUM >= 0x075500
	r = api->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	if (r == CURLE_OK)
		r = api->easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
#endif
	if (r == CURLE_UNKNOWN_OPTION) {
		/* By their numbers: newer headers warn of the names. */
		r = api->easy_setopt(easy, (CURLoption)181 /* CURLOPT_PROTOCOLS */,
				     (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
		if (r == CURLE_OK)
			r = api->easy_setopt(easy, (CURLoption)182 /* CURLOPT_REDIR_PROTOCOLS */,
					     (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
	}
	return r;
}
