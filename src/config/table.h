/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Private to src/config/: the table of all keys, and reading and writing of one value. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "src/config/config.h"

enum config_type {
	CONFIG_BOOL,	    /* bool */
	CONFIG_COUNT,	    /* uint32_t */
	CONFIG_AUTO_BYTES,  /* uint32_t, with units; 0: auto */
	CONFIG_BYTES,	    /* uint64_t, with units */
	CONFIG_DURATION,    /* uint64_t nanoseconds */
	CONFIG_SHARE,	    /* uint32_t, millionths; as a percentage */
	CONFIG_WORD,	    /* char *: one word */
	CONFIG_TEXT,	    /* char *: any text */
	CONFIG_PATH,	    /* char *: absolute */
	CONFIG_URL,	    /* char *: http(s), no query */
	CONFIG_URL_EXACT,   /* char *: http(s), used as it is */
	CONFIG_URLS,	    /* char *: as CONFIG_URL, some with blanks between them */
	CONFIG_HOST,	    /* char *: a name or an address */
	CONFIG_PROXY,	    /* char *: a URL, or none */
	CONFIG_HEADERS,	    /* char ** and size_t in struct config_export */
	CONFIG_COMPRESSION, /* enum config_compression */
	CONFIG_PROTOCOL,    /* enum config_protocol */
	CONFIG_PRESET,	    /* enum config_preset */
	CONFIG_LISTEN,	    /* char *: an address of this host alone, as util/address.h reads it */
	CONFIG_LOG_LEVEL,   /* enum log_level */
	CONFIG_DEMANGLE,    /* enum config_demangle */
	CONFIG_SECCOMP,	    /* enum config_seccomp */
	CONFIG_GLOBS,	    /* char *: this and the following are lists with commas */
	CONFIG_USERS,	    /* numbers, also of users given by name: see config_users_set() */
	CONFIG_CONTAINERS,
	CONFIG_CGROUPS,
	CONFIG_CPUS,
};

struct config_key {
	const char *section; /* of a section with a name the part before it: "export" */
	const char *name;
	enum config_type type;
	size_t offset;	   /* in struct config; for sections with a name in their own struct */
	const char *value; /* the default, as text; NULL: unset */
	uint64_t min, max; /* numbers */
	uint64_t multiple; /* numbers: a multiple of this; 0: any number */
	bool power_of_two;
	const char *help; /* one paragraph of whole sentences */
};

#define CONFIG_SECTION_EXPORT	"export"
#define CONFIG_SECTION_EVENT	"event"
#define CONFIG_SECTION_RESOURCE "resource" /* keys are free: resource attributes */

/* All keys, grouped by section in the order in which they are printed. */
const struct config_key *config_keys(size_t *ret_n);
/* The sections: their names ("export" for [export:NAME]), and a line on each. */
struct config_section {
	const char *name;
	const char *help;
	/* Of sections with a name: what the section describes, "a destination", and an example of
	 * a name. */
	const char *what, *example;
};
const struct config_section *config_sections(size_t *ret_n);
/* The row of a section with a name, for "export" and for "export:otel"; NULL: another section. */
const struct config_section *config_section_with_name(const char *section);

#define CONFIG_ERROR_MAX 512
/* error = "expected WHAT"; always -EINVAL. */
int config_expected(char *error, const char *what);

/*
 * Sets the field of row in base from text; "" gives the default. 0; -ENOMEM; -EINVAL: error
 * (CONFIG_ERROR_MAX bytes) says what was expected, and nothing has changed.
 */
int config_value_set(const struct config_key *row, void *base, const char *text, char *error);
/* Frees the field of row in base. */
void config_value_free(const struct config_key *row, void *base);
/* Prints the value in the form that config_value_set() reads; values of headers as "***". */
void config_value_print(const struct config_key *row, const void *base, FILE *out);
/* Is a text short enough to be sent to the children? 0, or -EINVAL and error. */
int config_text_check(const char *text, char *error);
/* The range that row allows: "1s .. 1h", "1 .. 1000"; "" for texts. Returns buf. */
const char *config_value_range(const struct config_key *row, char *buf, size_t size);

/* Replaces the headers of x with those of a list. 0; -ENOMEM; -EINVAL with error. */
int config_headers_set(struct config_export *x, const char *text, char *error);
void config_headers_free(struct config_export *x);
/*
 * Splits "k=v,k2=v2" in place, decodes %XX in the values, and calls add for each pair until it
 * fails. 0; -EINVAL with error; what add returned.
 */
int config_list_parse(char *text, char *error,
		      int (*add)(void *ctx, const char *key, const char *value, char *error),
		      void *ctx);

/*
 * Sets field to the uids of a list of users; "" unsets it. Names are looked up only here, because a
 * rule that excludes users must not depend on later answers of a directory service. 0; -ENOMEM;
 * -EINVAL with error, and nothing has changed.
 */
int config_users_set(char **field, const char *text, char *error);

/* Sets the keys of base to their defaults. section: "export" or "event"; "": base is a struct
 * config. 0 or -ENOMEM. */
int config_set_defaults(const char *section, void *base);
/* Sets or replaces a resource attribute; value "" removes it. 0 or -errno. */
int config_resource_set(struct config *c, const char *key, const char *value);
/* The destination of that name, which is added with the defaults if it is new; borrowed from c. 0;
 * -ENOMEM; -E2BIG: there are too many. */
int config_export_get(struct config *c, const char *name, struct config_export **ret);
/* The same for an event. */
int config_event_get(struct config *c, const char *name, struct config_event **ret);

/*
 * Applies the OTEL_* variables; errors gets warnings and errors. 0; -EINVAL after an error;
 * -ENOMEM.
 */
int config_environment_apply(struct config *c, FILE *errors);
/* Applies only DEBUGINFOD_URLS, for captures, which use no other variable. 0 or -ENOMEM. */
int config_environment_apply_debuginfod(struct config *c, FILE *errors);

/* Reads a regular file of at most max bytes; the caller frees *ret. As root it refuses a file that
 * others can write; own: and a file of another user. 0, or -errno with the reason in error. */
int config_file_read(const char *path, size_t max, bool own, char **ret, size_t *ret_n,
		     char *error);
