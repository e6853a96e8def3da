import ChildPrograms
import NighTestKit

/// A library that is a plugin, or nearly one. It is written in C, so that each detail can be made wrong.
struct ForeignLibrary {
    /// The macros that select what is wrong with it, as passed to the C compiler.
    var defines: [String: String] = [:]
    /// Whether it has the entry function of a plugin.
    var hasEntry = true

    private static let source = """
        #include "nigh_plugin.h"
        #include <stdio.h>
        #ifndef INTERFACE
        #define INTERFACE NIGH_PLUGIN_INTERFACE
        #endif
        #ifndef TOOLCHAIN
        #define TOOLCHAIN __VERSION__
        #endif
        #ifndef FINGERPRINT
        #define FINGERPRINT NIGH_INTERFACE_FINGERPRINT
        #endif
        extern const void *nigh_shared_mark(void);
        static void *no_entry(void) { return 0; }
        static struct nigh_plugin description = {
            .interface = INTERFACE, .toolchain = TOOLCHAIN, .nigh_version = NIGH_VERSION,
            .nigh_fingerprint = FINGERPRINT, .scheme = "odd", .version = "1.0", .make_entry = no_entry,
        };
        #ifdef LATENCY
        static const double latency = LATENCY;
        #else
        static const double latency = 1;
        #endif
        #ifdef NEEDS
        extern void NEEDS(void);
        void (*needed)(void) = NEEDS;
        #endif
        __attribute__((constructor)) static void loaded(void) { fputs("its code has run\\n", stderr); }
        const struct nigh_plugin *ENTRY(void) {
        #ifdef NOTHING
            return 0;
        #endif
            description.capabilities.typical_latency_ms = latency;
        #ifndef OTHER_MARK
            description.shared_mark = nigh_shared_mark();
        #endif
            return &description;
        }
        """

    /// Compiles the library to the file at `path`.
    func build(to path: String) throws {
        let entry = hasEntry ? "nigh_transport_plugin" : "something_else"
        let flags = defines.merging(["ENTRY": entry]) { $1 }.map { "-D\($0.key)=\($0.value)" }
        let compiler = try Child(
            BuiltPackages.tool("clang"),
            flags + [
                "-shared", "-fPIC", "-I", "\(BuiltPackages.root)/Sources/Plugins/Entry/include", "-x", "c",
                "-", "-o",
                path,
            ], reads: true)
        for line in Self.source.split(separator: "\n") { compiler.type(String(line)) }
        compiler.closeInput()
        let (status, errors) = try compiler.end()
        guard status == 0 else { throw Child.Failure(description: errors.joined(separator: "\n")) }
    }
}
