/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "src/http/curl.h"
#include "util/cleanup.h"
#include "util/library.h"

int curl_api_load(struct curl_api *ret, char *error, size_t n_error)
{
	/* The ABI is the same with every TLS library. */
	static const char *const names[] = {CURL_SONAME, "libcurl-gnutls.so.4"};
#define CURL_NAME(name) "curl_" #name,
	static const char *const functions[] = {CURL_FUNCTIONS(CURL_NAME)};
#undef CURL_NAME
	static const struct library library = {.names = names,
					       .n_names = ARRAY_SIZE(names),
					       .package = "libcurl",
					       .functions = functions,
					       .n_functions = ARRAY_SIZE(functions)};
	void *found[ARRAY_SIZE(functions)];
	struct curl_api api;
	int r = library_load(&library, found, error, n_error);

	if (r < 0)
		return r;
	/* Its members are pointers to these functions, in this order. */
	_Static_assert(sizeof(api) == sizeof(found), "nothing else is in it");
	memcpy(&api, found, sizeof(api));
	if (api.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
		(void)snprintf(error, n_error, "libcurl cannot be initialised");
		return -EIO;
	}
	*ret = api;
	return 0;
}

CURLcode curl_api_set_protocols(const struct curl_api *api, CURL *easy, const char *url)
{
	bool is_safe = strncasecmp(url, "https:", 6) == 0;
	CURLcode r = CURLE_UNKNOWN_OPTION;

#if LIBCURL_VERSION_NUM >= 0x075500
	r = api->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	if (r == CURLE_OK)
		r = api->easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR,
				     is_safe ? "https" : "http,https");
#endif
	if (r == CURLE_UNKNOWN_OPTION) {
		/* By number, because newer headers warn about the names. */
		r = api->easy_setopt(easy, (CURLoption)181 /* CURLOPT_PROTOCOLS */,
				     (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
		if (r == CURLE_OK)
			r = api->easy_setopt(
				easy, (CURLoption)182 /* CURLOPT_REDIR_PROTOCOLS */,
				(long)((is_safe ? 0 : CURLPROTO_HTTP) | CURLPROTO_HTTPS));
	}
	return r;
}

CURLcode curl_api_set_authorities(const struct curl_api *api, CURL *easy)
{
#if LIBCURL_VERSION_NUM >= 0x075400 /* 7.84: it can name its file */
	static const char *const places[] = {
		"/etc/ssl/certs/ca-certificates.crt", /* Debian, Ubuntu, Alpine, Arch */
		"/etc/pki/tls/certs/ca-bundle.crt",   /* Red Hat, Fedora */
		"/etc/ssl/ca-bundle.pem",	      /* SUSE */
	};
	const char *own = NULL;

	if (api->easy_getinfo(easy, CURLINFO_CAINFO, &own) != CURLE_OK || !own ||
	    access(own, R_OK) == 0)
		return CURLE_OK;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++)
		if (access(places[i], R_OK) == 0)
			return api->easy_setopt(easy, CURLOPT_CAINFO, places[i]);
#endif
	return CURLE_OK;
}
