/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The configuration file. rte_cfgfile reads it, but keeps no line numbers and takes the last
 * of two equal keys silently: so the file is walked a second time for what a message must say.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cfgfile.h>

#include "rnicd_conf.h"

/* Blanks off both ends, in place. */
static char *
trim(char *s)
{
	size_t len;

	s += strspn(s, " \t\r\n");
	len = strlen(s);
	while (len > 0 && strchr(" \t\r\n", s[len - 1]) != NULL)
		s[--len] = '\0';
	return s;
}

/*
 * What stands in a line: a section's head (returns '['), a key ('='), nothing (0) or nonsense
 * ('?'). *name points to the trimmed head or key.
 */
static int
line_kind(char *line, char **name)
{
	char *end;

	line[strcspn(line, "#")] = '\0';
	line = trim(line);
	if (*line == '\0')
		return 0;
	if (*line == '[') {
		end = strchr(line, ']');
		if (end == NULL || end[1] != '\0')
			return '?';
		*end = '\0';
		*name = trim(line + 1);
		return '[';
	}
	end = strchr(line, '=');
	if (end == NULL || end == line)
		return '?';
	*end = '\0';
	*name = trim(line);
	return '=';
}

/*
 * Line number of a key of the section with that number (from 0), the nth of that name (from 1);
 * or of the section's head when key is NULL. 0 when it cannot be found.
 */
static unsigned int
find_line(const char *path, int section, const char *key, int nth)
{
	FILE *f = fopen(path, "re");
	char line[1024], *name;
	unsigned int n = 0, found = 0;
	int at = -1;

	while (f != NULL && found == 0 && fgets(line, sizeof(line), f) != NULL) {
		int kind = line_kind(line, &name);

		n++;
		at += kind == '[';
		if (at != section)
			continue;
		if (key == NULL ? kind == '[' : kind == '=' && strcmp(name, key) == 0)
			found = --nth == 0 ? n : 0;
	}
	if (f != NULL)
		fclose(f);
	return found;
}

/* What rte_cfgfile would refuse with a line of DPDK's log, or swallow. */
static int
check_lines(const char *path, struct rnicd_error *err)
{
	FILE *f = fopen(path, "re");
	char line[1024], *name;
	unsigned int n = 0;
	bool in_section = false;
	int kind, rc = 0;

	if (f == NULL)
		return rnicd_fail(err, "cannot read configuration file %s: %s", path,
				  strerror(errno));
	while (rc == 0 && fgets(line, sizeof(line), f) != NULL) {
		n++;
		if (strlen(line) > CFG_VALUE_LEN) {
			rc = rnicd_fail(err, "%s:%u: longer than %d characters", path, n,
					CFG_VALUE_LEN);
			break;
		}
		kind = line_kind(line, &name);
		if (kind == '?')
			rc = rnicd_fail(err, "%s:%u: neither [section] nor key = value", path, n);
		else if (kind != 0 && strlen(name) >= CFG_NAME_LEN)
			rc = rnicd_fail(err, "%s:%u: name longer than %d characters", path, n,
					CFG_NAME_LEN - 1);
		else if (kind == '=' && !in_section)
			rc = rnicd_fail(err, "%s:%u: '%s' stands before the first [section]",
					path, n, name);
		in_section |= kind == '[';
	}
	if (rc == 0 && ferror(f))
		rc = rnicd_fail(err, "cannot read configuration file %s: %s", path,
				strerror(errno));
	fclose(f);
	return rc;
}

/* The port that a "[port NAME]" section speaks of: its NAME, or NULL for other sections. */
static const char *
port_section(const char *section)
{
	if (strncmp(section, "port", 4) != 0 || strchr(" \t", section[4]) == NULL ||
	    section[4] == '\0')
		return NULL;
	return section + 4 + strspn(section + 4, " \t");
}

static int
load_entry(struct rnicd_conf *c, struct rnicd_port_conf *p, const char *section,
	   const struct rte_cfgfile_entry *e, struct rnicd_error *err)
{
	if (p != NULL)
		return rnicd_port_set(p, e->name, e->value, err);
	return rnicd_option_set(c, section, e->name, e->value, err);
}

/* A port's kind says which keys it takes: the device is read before the rest. */
static int
load_port_device(struct rnicd_port_conf *p, const char *name,
		 const struct rte_cfgfile_entry *e, int n, struct rnicd_error *err)
{
	rnicd_port_init(p);
	if (rnicd_port_set(p, "name", name, err) < 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (strcmp(e[i].name, "device") == 0)
			return rnicd_port_set(p, "device", e[i].value, err);
	return rnicd_fail(err, "port '%s' has no device = KIND:DEVICE", name);
}

/* Which of the entries with its name this is, from 1. */
static int
occurrence(const struct rte_cfgfile_entry *e, int i)
{
	int n = 1;

	for (int k = 0; k < i; k++)
		n += strcmp(e[k].name, e[i].name) == 0;
	return n;
}

static int
load_section(struct rnicd_conf *c, const char *path, struct rte_cfgfile *cf, int index,
	     struct rnicd_error *err)
{
	struct rte_cfgfile_entry e[64];
	char section[CFG_NAME_LEN];
	int n = rte_cfgfile_section_num_entries_by_index(cf, section, index);
	const char *port = port_section(section);
	struct rnicd_port_conf *p = NULL;

	if (port == NULL && strcmp(section, "device") != 0 && strcmp(section, "limits") != 0) {
		rnicd_fail(err, "no section is called [%s]; there are [device], [limits] and "
			   "[port NAME]", section);
		return rnicd_fail_prefix(err, "%s:%u: ", path, find_line(path, index, NULL, 1));
	}
	if (n > 64 || n < 0)
		return rnicd_fail(err, "%s:%u: more than 64 keys in a section", path,
				  find_line(path, index, NULL, 1));
	n = rte_cfgfile_section_entries_by_index(cf, index, section, e, n);
	if (port != NULL) {
		if (c->num_ports == RNICD_MAX_PORTS)
			return rnicd_fail(err, "%s:%u: more than %d ports", path,
					  find_line(path, index, NULL, 1), RNICD_MAX_PORTS);
		p = &c->port[c->num_ports++];
		if (load_port_device(p, port, e, n, err) < 0) {
			unsigned int line = find_line(path, index, "device", 1);

			return rnicd_fail_prefix(err, "%s:%u: ", path,
				line != 0 ? line : find_line(path, index, NULL, 1));
		}
	}
	for (int i = 0; i < n; i++) {
		if (p != NULL && strcmp(e[i].name, "device") == 0)
			continue;
		if (load_entry(c, p, section, &e[i], err) < 0)
			return rnicd_fail_prefix(err, "%s:%u: ", path,
						 find_line(path, index, e[i].name,
							   occurrence(e, i)));
	}
	return 0;
}

int
rnicd_config_load(struct rnicd_conf *c, const char *path, struct rnicd_error *err)
{
	struct rte_cfgfile_parameters params = {.comment_character = '#'};
	struct rte_cfgfile *cf;
	int n, rc = 0;

	if (check_lines(path, err) < 0)
		return -1;
	cf = rte_cfgfile_load_with_params(path, CFG_FLAG_EMPTY_VALUES, &params);
	if (cf == NULL)
		return rnicd_fail(err, "cannot read configuration file %s", path);
	n = rte_cfgfile_num_sections(cf, NULL, 0);
	for (int i = 0; i < n && rc == 0; i++)
		rc = load_section(c, path, cf, i, err);
	rte_cfgfile_close(cf);
	return rc;
}
