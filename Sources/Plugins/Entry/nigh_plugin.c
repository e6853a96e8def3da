#include "nigh_plugin.h"

#include <stddef.h>

// Here, and not a header alone, so that all users of the header are built anew when it changes.

_Static_assert(offsetof(struct nigh_plugin, interface) == 0, "whatever changes, a program finds the version in front");
_Static_assert(sizeof(((struct nigh_plugin *)0)->interface) == 4, "whatever changes, the version has four bytes");
