/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the daemon was told: options of the command line over the configuration file. One table
 * (rnicd_option.c) serves both, so that each option has the same name, range and message there.
 */
#ifndef RNICD_CONF_H
#define RNICD_CONF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>

#define RNICD_RUN_DIR "/run/softrnic"
#define RNICD_MAX_PORTS 16
#define RNICD_MAX_ADDRS 16
#define RNICD_MAX_ROUTES 16
#define RNICD_MAX_WORKERS 32
#define RNICD_MAX_CC 16
#define RNICD_MAX_LOG_LEVELS 8

/** A sentence for the user. Filled in by whatever fails. */
struct rnicd_error {
	char text[512];
};
/** Always -1, so that callers can return it. */
int rnicd_fail(struct rnicd_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/** Put words in front of the sentence that is there. Always -1. */
int rnicd_fail_prefix(struct rnicd_error *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

struct rnicd_addr {
	char text[64]; /* "192.0.2.1/24" */
	uint16_t vlan; /* 0: untagged */
};

struct rnicd_route {
	char prefix[64];  /* "10.0.0.0/8" or "default" */
	char gateway[64]; /* "": on the link */
};

/** A parameter of congestion management. */
struct rnicd_cc {
	char name[32];
	uint64_t value;
};

enum rnicd_port_kind {
	RNICD_PORT_LOOP,
	RNICD_PORT_AF_PACKET,
	RNICD_PORT_AF_XDP,
	RNICD_PORT_TAP,
	RNICD_PORT_PCI,
	RNICD_PORT_VDEV,   /* DPDK's own words for a virtual device */
	RNICD_PORT_ETHDEV, /* one that EAL arguments of the user made */
	RNICD_PORT_KINDS
};

struct rnicd_port_conf {
	char name[64];
	enum rnicd_port_kind kind;
	char dev[64];	   /* interface, PCI address, vdev name */
	char devargs[192]; /* further "key=value,..." for the driver, or "" */
	bool no_device;	   /* the file's section has not named one yet */
	uint16_t mtu;	   /* 0: as it is */
	uint16_t vlan;	   /* of addresses that name none */
	uint16_t rx_desc, tx_desc;
	uint64_t no_offload;
	struct rnicd_addr addr[RNICD_MAX_ADDRS];
	uint32_t num_addrs;
	struct rnicd_route route[RNICD_MAX_ROUTES];
	uint32_t num_routes;
	struct rnicd_cc cc[RNICD_MAX_CC];
	uint32_t num_cc;
};

enum rnicd_tri { RNICD_AUTO, RNICD_YES, RNICD_NO };

struct rnicd_conf {
	char config[256]; /* the file, or "" */
	char name[32];
	char socket[100]; /* sun_path with room for what the daemon derives */
	char admin[100];
	char pidfile[100];
	char user[64];
	char lcores[256];
	char log_level[RNICD_MAX_LOG_LEVELS][64];
	uint32_t num_log_levels;
	uint32_t workers;
	uint32_t memory_mb; /* 0: as much as is needed */
	uint32_t idle_us;
	uint64_t seed;
	enum rnicd_tri huge;
	bool daemonize;
	bool no_telemetry;
	uint64_t no_offload; /* on every port */
	/* limits, 0: the engine's default */
	uint32_t max_qps, max_mrs, max_cqs, max_srqs;
	uint32_t shadows;
	uint32_t quota_qps, quota_mrs, quota_cqs, quota_srqs, quota_files;
	uint64_t quota_arena_bytes, quota_mr_bytes;
	uint32_t rx_mbufs, tx_mbufs;
	struct rnicd_port_conf port[RNICD_MAX_PORTS];
	uint32_t num_ports;
	/* after `--`, theirs win */
	char **eal_argv;
	int eal_argc;
};

enum rnicd_options_result {
	RNICD_OPTIONS_RUN,
	RNICD_OPTIONS_DONE, /* --help or --version: printed */
	RNICD_OPTIONS_BAD,
};

/** Defaults, then the file, then the command line. Paths are absolute afterwards. */
enum rnicd_options_result rnicd_options_parse(struct rnicd_conf *c, int argc, char **argv,
					      struct rnicd_error *err);
/** One option of a section ("device" or "limits") by its name in the file. @return 0 or -1. */
int rnicd_option_set(struct rnicd_conf *c, const char *section, const char *name,
		     const char *value, struct rnicd_error *err);
/** Read a configuration file over what *c holds. @return 0, or -1 with "FILE:LINE: ..." */
int rnicd_config_load(struct rnicd_conf *c, const char *path, struct rnicd_error *err);

/** "af_packet:veth0,ip=192.0.2.1/24,mtu=4200". @return 0 or -1. */
int rnicd_port_spec_parse(struct rnicd_port_conf *p, const char *spec, struct rnicd_error *err);
/** One "key = value" of a port; the file's names are those of the spec. @return 0 or -1. */
int rnicd_port_set(struct rnicd_port_conf *p, const char *key, const char *value,
		   struct rnicd_error *err);
void rnicd_port_init(struct rnicd_port_conf *p);
const char *rnicd_port_kind_name(enum rnicd_port_kind kind);
/** "192.0.2.1/24" or "192.0.2.1/24@100". @return 0 or -1. */
int rnicd_addr_parse(struct rnicd_addr *a, const char *text, struct rnicd_error *err);
/** A parameter of congestion management: "on", "off" or a number. @return 0 or -1. */
int rnicd_cc_parse(struct rnicd_cc *cc, const char *name, const char *value,
		   struct rnicd_error *err);
/** @return the bit of the offload with that name, or 0. */
uint64_t rnicd_offload_bit(const char *name, struct rnicd_error *err);
/** "4K", "2G": bytes. @return 0 or -1. */
int rnicd_size_parse(uint64_t *v, const char *text, struct rnicd_error *err);
/** A decimal or 0x number from min to max, nothing behind it. @return 0 or -1. */
int rnicd_number_parse(uint64_t *v, const char *text, uint64_t min, uint64_t max,
		       struct rnicd_error *err);

#endif /* RNICD_CONF_H */
