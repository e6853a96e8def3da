// Which Nigh this is: a plugin that was built with another fingerprint is refused.
// Written by `make api`; do not edit. docs/reference/stability.md explains it.
#ifndef NIGH_INTERFACE_H
#define NIGH_INTERFACE_H

#define NIGH_VERSION "0.2.0"
#define NIGH_INTERFACE_FINGERPRINT "427ee2dc25dfacec"

#endif
