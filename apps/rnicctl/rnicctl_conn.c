/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to a daemon's admin socket: a JSON object a line, each answered by one. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "rnicctl.h"

static FILE *in, *out; /* two streams: one cannot seek between reading and writing */

static void
say_why(const char *path, int error)
{
	fprintf(stderr, "rnicctl: cannot reach a daemon at %s: %s\n", path, strerror(error));
	if (error == ENOENT || error == ECONNREFUSED)
		fprintf(stderr, "rnicctl: is rnicd running? -s PATH or -d NAME select another "
			"one\n");
	if (error == EACCES)
		fprintf(stderr, "rnicctl: only root and the user that rnicd runs as may\n");
}

int
rnicctl_connect(const char *path)
{
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	struct timeval limit = {.tv_sec = 10};
	int fd;

	if (strlen(path) >= sizeof(sun.sun_path)) {
		fprintf(stderr, "rnicctl: %s is too long for a socket's path\n", path);
		return RNICCTL_USAGE;
	}
	strcpy(sun.sun_path, path);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0) {
		say_why(path, errno);
		if (fd >= 0)
			close(fd);
		return RNICCTL_UNREACHABLE;
	}
	/* a control thread that hangs is a fault to be told, not to be waited for */
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	in = fdopen(fd, "r");
	out = fdopen(dup(fd), "w");
	return in != NULL && out != NULL ? RNICCTL_OK : RNICCTL_UNREACHABLE;
}

json_t *
rnicctl_ask(json_t *request)
{
	json_error_t je;
	json_t *answer;

	if (json_dumpf(request, out, JSON_COMPACT) < 0 || fputc('\n', out) == EOF ||
	    fflush(out) == EOF) {
		fprintf(stderr, "rnicctl: the daemon has closed the connection\n");
		json_decref(request);
		return NULL;
	}
	json_decref(request);
	errno = 0;
	answer = json_loadf(in, JSON_DISABLE_EOF_CHECK, &je);
	if (answer == NULL) {
		fprintf(stderr, "rnicctl: no answer: %s\n",
			errno == EAGAIN ? "the daemon is silent for 10 s" : je.text);
		return NULL;
	}
	return answer;
}
