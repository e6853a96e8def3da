// Which Nigh this is: a plugin that was built with another fingerprint is refused.
// Written by `make api`, and by nobody else; docs/stability.md says what for.
#ifndef NIGH_INTERFACE_H
#define NIGH_INTERFACE_H

#define NIGH_VERSION "0.2.0"
#define NIGH_INTERFACE_FINGERPRINT "37c0d48978f8e225"

#endif
