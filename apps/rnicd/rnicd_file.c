/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of a running daemon: the locked pidfile, which alone says that a device is in use, and
 * the sockets beside it. Going to the background, too, since the lock is held across the fork.
 */
#include <bsd/libutil.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "rnicd.h"

/* All directories above a path, those made are the user's of --user. */
static int
make_dirs(const struct rnicd_conf *c, const char *path, struct rnicd_error *err)
{
	char dir[128];

	for (const char *slash = strchr(path + 1, '/'); slash != NULL;
	     slash = strchr(slash + 1, '/')) {
		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		if (mkdir(dir, 0755) == 0) {
			if (rnicd_priv_own(c, dir, err) < 0)
				return -1;
		} else if (errno != EEXIST) {
			return rnicd_fail(err, "cannot make directory %s: %s; name another with "
					  "--socket", dir, strerror(errno));
		}
	}
	return 0;
}

int
rnicd_files_open(struct rnicd *r, struct rnicd_error *err)
{
	const struct rnicd_conf *c = &r->conf;
	pid_t other = 0;

	if (make_dirs(c, c->socket, err) < 0 || make_dirs(c, c->admin, err) < 0 ||
	    make_dirs(c, c->pidfile, err) < 0)
		return -1;
	r->pidfh = pidfile_open(c->pidfile, 0644, &other);
	if (r->pidfh != NULL)
		return 0;
	if (errno == EEXIST)
		return rnicd_fail(err, "device '%s' is running already, process %d (%s); stop it "
				  "with `rnicctl -s %s shutdown`, or give this one its own --name "
				  "or --socket", c->name, (int)other, c->pidfile, c->admin);
	return rnicd_fail(err, "cannot write %s: %s; name another place with --pidfile",
			  c->pidfile, strerror(errno));
}

/* Whether somebody accepts connections there, of either type. */
static bool
is_alive(const char *path)
{
	static const int types[] = {SOCK_SEQPACKET, SOCK_STREAM};
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	bool alive = false;

	snprintf(sun.sun_path, sizeof(sun.sun_path), "%s", path);
	for (size_t i = 0; i < 2; i++) {
		int fd = socket(AF_UNIX, types[i] | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

		/* EAGAIN: its backlog is full */
		if (fd >= 0 && (connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) == 0 ||
				errno == EAGAIN))
			alive = true;
		if (fd >= 0)
			close(fd);
	}
	return alive;
}

static int
unlink_stale(const char *path, struct rnicd_error *err)
{
	struct stat st;

	if (lstat(path, &st) < 0)
		return errno == ENOENT ? 0 : rnicd_fail(err, "%s: %s", path, strerror(errno));
	if (!S_ISSOCK(st.st_mode))
		return rnicd_fail(err, "%s is there and no socket; name another path", path);
	if (is_alive(path))
		return rnicd_fail(err, "somebody listens on %s already, a daemon with another "
				  "--pidfile; name another path with --socket", path);
	if (unlink(path) < 0)
		return rnicd_fail(err, "cannot remove %s, left by a daemon that died: %s", path,
				  strerror(errno));
	return 0;
}

int
rnicd_files_unlink_stale(struct rnicd *r, struct rnicd_error *err)
{
	if (unlink_stale(r->conf.socket, err) < 0 || unlink_stale(r->conf.admin, err) < 0)
		return -1;
	r->unlink_sockets = true;
	return 0;
}

void
rnicd_files_close(struct rnicd *r)
{
	if (r->unlink_sockets) {
		unlink(r->conf.socket);
		unlink(r->conf.admin);
	}
	if (r->pidfh != NULL)
		pidfile_remove(r->pidfh);
	r->pidfh = NULL;
}

/* ---- leaving at once ---------- */

static const struct rnicd *forced;

void
rnicd_force_prepare(const struct rnicd *r)
{
	forced = r;
}

void
rnicd_force_exit(int sig)
{
	if (forced != NULL && forced->unlink_sockets) {
		unlink(forced->conf.socket);
		unlink(forced->conf.admin);
		unlink(forced->conf.pidfile);
	}
	_exit(128 + sig);
}

/* ---- background, readiness ---------- */

/* The parent: 0 when the child says so, else the child's own fate. */
static void
wait_ready(int fd, pid_t child)
{
	char byte;
	int status = 0;

	if (TEMP_FAILURE_RETRY(read(fd, &byte, 1)) == 1)
		_exit(0);
	waitpid(child, &status, 0);
	_exit(WIFEXITED(status) && WEXITSTATUS(status) != 0 ? WEXITSTATUS(status) : 1);
}

int
rnicd_daemonize(struct rnicd *r, struct rnicd_error *err)
{
	int fds[2];
	pid_t pid;

	if (r->conf.daemonize) {
		if (pipe2(fds, O_CLOEXEC) < 0)
			return rnicd_fail(err, "pipe: %s", strerror(errno));
		pid = fork();
		if (pid < 0)
			return rnicd_fail(err, "fork: %s", strerror(errno));
		if (pid > 0) {
			close(fds[1]);
			wait_ready(fds[0], pid);
		}
		close(fds[0]);
		r->ready_fd = fds[1];
		setsid();
	}
	if (pidfile_write(r->pidfh) < 0)
		return rnicd_fail(err, "cannot write %s: %s", r->conf.pidfile, strerror(errno));
	return 0;
}

/* systemd's protocol: a datagram to the socket that $NOTIFY_SOCKET names. */
static void
notify_manager(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	static const char text[] = "READY=1";
	socklen_t len;
	int fd;

	if (path == NULL || strlen(path) >= sizeof(sun.sun_path))
		return;
	strcpy(sun.sun_path, path);
	len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	if (path[0] == '@')
		sun.sun_path[0] = '\0'; /* the abstract name space */
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	if (sendto(fd, text, sizeof(text) - 1, MSG_NOSIGNAL,
		   (const struct sockaddr *)&sun, len) < 0)
		RNICD_LOG(WARNING, "cannot tell the service manager: %s", strerror(errno));
	close(fd);
}

void
rnicd_ready(struct rnicd *r)
{
	int null;

	notify_manager();
	if (r->ready_fd < 0)
		return;
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null >= 0) {
		for (int fd = 0; fd <= 2; fd++)
			dup2(null, fd);
		close(null);
	}
	if (chdir("/") < 0)
		RNICD_LOG(WARNING, "chdir: %s", strerror(errno));
	if (write(r->ready_fd, "", 1) < 0)
		RNICD_LOG(WARNING, "the parent process has gone");
	close(r->ready_fd);
	r->ready_fd = -1;
}
