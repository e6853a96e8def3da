import Glibc
import NighCore

/// The program that plugins are loaded into, and whether it can load any.
enum HostProgram {
    /// Fails if this program cannot load plugins. A plugin's code calls Swift's runtime and Nigh, and each must exist
    /// only once in the process. If the program has a private copy, the plugin gets a second one, and the first
    /// asynchronous call from one to the other ends the program.
    static func check(loading path: String) throws(NighError) {
        guard sharesSwift else {
            throw NighError(
                .loadingPlugin,
                .unavailable(
                    "this program contains Swift's library, and would crash with the one that \(path) uses"),
                advice: "build the program without -static-stdlib")
        }
        guard dlsym(nil, "nigh_shared_mark") == UnsafeMutableRawPointer(mutating: nighSharedMark()) else {
            throw NighError(
                .loadingPlugin,
                .unavailable("this program does not export its Nigh, so \(path) cannot use it"),
                advice: "link the program to Nigh's product NighShared")
        }
    }

    /// Whether Swift's runtime is a shared library in this process.
    private static var sharesSwift: Bool {
        guard let library = dlopen("libswiftCore.so", RTLD_LAZY | RTLD_NOLOAD) else { return false }
        dlclose(library)
        return true
    }

    /// The kind of this machine, as in an ELF header.
    static var machine: UInt16 {
        #if arch(x86_64)
            UInt16(EM_X86_64)
        #elseif arch(arm64)
            UInt16(EM_AARCH64)
        #endif
    }
}
