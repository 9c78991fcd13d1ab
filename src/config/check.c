/* SPDX-License-Identifier: Apache-2.0 */
#include "src/config/check.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "src/config/table.h"
#include "util/address.h"
#include "util/cleanup.h"

int config_path_check(const char *text, char *error)
{
	return text[0] == '/' ? config_text_check(text, error)
			      : config_expected(error, "an absolute path");
}

int config_word_check(const char *text, char *error)
{
	return strpbrk(text, " \t") ? config_expected(error, "one word")
				    : config_text_check(text, error);
}

static int check_url(const char *text, bool exact, char *error)
{
	const char *host, *host_end;

	if (config_text_check(text, error) < 0)
		return -EINVAL;
	if (strncasecmp(text, "http://", 7) == 0)
		host = text + 7;
	else if (strncasecmp(text, "https://", 8) == 0)
		host = text + 8;
	else
		return config_expected(error, "a URL that begins with http:// or https://");
	host_end = host + strcspn(host, "/?#");
	if (memchr(host, '@', (size_t)(host_end - host)))
		return config_expected(error,
				       "a URL without user and password; credentials go into "
				       "headers or headers_file");
	if (host == host_end || *host == ':')
		return config_expected(error, "a host name or address behind ://");
	if (strpbrk(text, " \t\"<>\\^`{|}"))
		return config_expected(error,
				       "a URL without blanks and other characters that need %XX");
	if (strchr(text, '#') || (!exact && strchr(text, '?')))
		return config_expected(error, exact ? "a URL without #fragment"
						    : "a base URL without ?query and #fragment; "
						      "profiles_endpoint may have a query");
	return 0;
}

int config_url_check(const char *text, char *error)
{
	return check_url(text, false, error);
}

int config_exact_url_check(const char *text, char *error)
{
	return check_url(text, true, error);
}

int config_urls_check(const char *text, char *error)
{
	size_t n_urls = 0;

	for (size_t n; *text; text += n) {
		_cleanup_free_ char *url = NULL;
		int r;

		text += strspn(text, " \t");
		n = strcspn(text, " \t");
		url = strndup(text, n);
		if (!url)
			return -ENOMEM;
		r = n ? check_url(url, false, error) : 0;
		n_urls += n > 0;
		if (r == 0 && n_urls > CONFIG_DEBUGINFOD_MAX_URLS)
			r = config_expected(error, "at most 16 URLs");
		if (r < 0)
			return r;
	}
	return 0;
}

int config_host_check(const char *text, char *error)
{
	size_t n = strlen(text);

	if (n > 253 || strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				    "0123456789.-_") != n)
		return config_expected(error, "a host name, without port");
	return 0;
}

/* As curl takes it: what comes behind the port means nothing. */
int config_proxy_check(const char *text, char *error)
{
	static const char *const schemes[] = {"http://", "https://", "socks5://", "socks5h://"};

	if (config_text_check(text, error) < 0)
		return -EINVAL;
	if (strcmp(text, "none") == 0)
		return 0;
	if (strchr(text, '@'))
		return config_expected(error, "a URL without user and password; with them, it goes "
					      "into https_proxy in the environment");
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t n = strlen(schemes[i]);

		if (strncasecmp(text, schemes[i], n) == 0 && text[n] &&
		    !strpbrk(text + n, " \t\"<>\\^`{|}/?#"))
			return 0;
	}
	return config_expected(error, "none, or a URL like http://proxy.example:3128 (http, https, "
				      "socks5 or socks5h)");
}

int config_listen_check(const char *text, char *error)
{
	struct address address;

	if (address_parse(text, &address) < 0)
		return config_expected(error,
				       "unix:/path (of less than 108 characters), 127.0.0.1:PORT "
				       "or [::1]:PORT");
	if (!address_is_local(&address))
		return config_expected(error,
				       "an address that only this host can reach (unix:/path, "
				       "127.0.0.1:PORT, [::1]:PORT): it shows what everyone runs; "
				       "for other hosts put a proxy with a password before it");
	return 0;
}
