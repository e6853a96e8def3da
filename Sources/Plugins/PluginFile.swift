import Glibc
import NighCore
import NighSystem

/// A file that is supposed to be a plugin, before any of its code has run.
struct PluginFile: Hashable, Sendable {
    /// The path as it was given, or found.
    let path: String

    init(_ path: String) { self.path = path }

    /// The name of the function that each plugin exports.
    private static let entrySymbol = "nigh_transport_plugin"

    /// Checks the file, loads it, and returns the plugin's description. From then on its code is a part of this
    /// process, even if the plugin is refused for its description: Swift cannot unload code.
    func open() throws(NighError) -> UnsafePointer<nigh_plugin> {
        try HostProgram.check(loading: path)
        try checkWhoMayWrite()
        try checkFormat()
        // The loader would look for a path without a slash among the system's libraries.
        guard let library = dlopen(path.contains("/") ? path : "./\(path)", RTLD_NOW | RTLD_LOCAL) else {
            throw linkingFailed(dlerror().map { String(cString: $0) } ?? "the loader gave no reason")
        }
        guard let symbol = dlsym(library, Self.entrySymbol) else {
            throw refusal(
                "it is not a Nigh plugin: it does not export \(Self.entrySymbol)",
                advice: "give the path of the transport's library")
        }
        typealias Entry = @convention(c) () -> UnsafePointer<nigh_plugin>?
        guard let description = unsafeBitCast(symbol, to: Entry.self)() else {
            throw refusal("it does not describe itself", advice: Self.reportAdvice)
        }
        return description
    }

    private func linkingFailed(_ message: String) -> NighError {
        // The loader puts the path in front of its message.
        let message =
            message.hasPrefix(path)
            ? String(message.dropFirst(path.count).drop { $0 == ":" || $0 == " " }) : message
        guard let range = message.firstRange(of: "undefined symbol: ") else {
            return refusal("it cannot be loaded: \(message)", advice: "see what it needs with `ldd \(path)`")
        }
        let symbol = message[range.upperBound...].prefix { $0 != " " && $0 != "," && $0 != "(" }
        return refusal(
            "it needs \(symbol), which this program does not have: it was built for another Nigh",
            advice: Self.rebuildAdvice)
    }

    // MARK: Before it is loaded

    /// Returns whether both paths lead to the same file.
    func isSame(as other: PluginFile) -> Bool {
        var (status, otherStatus) = (stat(), stat())
        guard stat(path, &status) == 0, stat(other.path, &otherStatus) == 0 else { return path == other.path }
        return status.st_dev == otherStatus.st_dev && status.st_ino == otherStatus.st_ino
    }

    /// Fails if others can write the file, or put another in its place: they could run any code in this program.
    private func checkWhoMayWrite() throws(NighError) {
        var status = stat()
        guard stat(path, &status) == 0 else {
            let number = errno
            throw NighError(
                .loadingPlugin, .system(number, "\(path): \(String(cString: strerror(number)))"),
                advice: "give the path of the transport's library, such as .build/debug/libMine.so")
        }
        guard status.st_mode & S_IFMT == S_IFREG else { throw refusal("it is not a regular file") }
        guard [0, geteuid()].contains(status.st_uid) else {
            throw refusal(
                "it belongs to user \(status.st_uid), who could change it", advice: Self.ownerAdvice)
        }
        guard status.st_mode & 0o022 == 0 else {
            throw refusal(
                "others may write it (mode \(String(status.st_mode & 0o7777, radix: 8)))",
                advice: "`chmod go-w \(ShellWord.quoted(path))`")
        }
        guard let exposure = PathExposure(ofFileAt: path) else { return }
        throw refusal(exposure.sentence, advice: exposure.advice ?? Self.ownerAdvice)
    }

    /// Checks that the file is a library for this machine, and that it is not cut off, as after a copy to a full disk.
    /// The loader's own message for another file helps nobody.
    private func checkFormat() throws(NighError) {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else {
            throw refusal("it cannot be read: \(String(cString: strerror(errno)))")
        }
        defer { close(descriptor) }
        var header = Elf64_Ehdr()
        let count = withUnsafeMutableBytes(of: &header) { read(descriptor, $0.baseAddress, $0.count) }
        let isELF = withUnsafeBytes(of: header.e_ident) { $0.starts(with: [0x7F, 0x45, 0x4C, 0x46]) }
        guard count == MemoryLayout<Elf64_Ehdr>.size, isELF else {
            throw refusal("it is not a library", advice: "a plugin is a shared library, FILE.so")
        }
        guard header.e_type == UInt16(ET_DYN), header.e_machine == HostProgram.machine else {
            throw refusal(
                "it is not a shared library for this kind of machine",
                advice: "build it on a machine like this one")
        }
        let size = lseek(descriptor, 0, SEEK_END)
        guard let needed = Self.size(of: header, descriptor), needed <= size else {
            throw refusal(
                "the file is cut off at \(size) bytes, or damaged",
                advice: "copy the file again, or rebuild the plugin")
        }
    }

    /// Returns the size that the file must have for all parts that its header names. Nil if the parts cannot be read.
    ///
    /// The loader maps these parts into memory. To touch one that the file does not have would end the process.
    private static func size(of header: Elf64_Ehdr, _ descriptor: Int32) -> Int64? {
        guard header.e_phentsize == MemoryLayout<Elf64_Phdr>.size else { return nil }
        var size = header.e_shoff &+ UInt64(header.e_shnum) &* UInt64(header.e_shentsize)
        for index in 0..<UInt64(header.e_phnum) {
            var segment = Elf64_Phdr()
            let offset = header.e_phoff &+ index &* UInt64(header.e_phentsize)
            let count = withUnsafeMutableBytes(of: &segment) {
                pread(descriptor, $0.baseAddress, $0.count, off_t(truncatingIfNeeded: offset))
            }
            guard count == MemoryLayout<Elf64_Phdr>.size else { return nil }
            size = max(size, segment.p_offset &+ segment.p_filesz)
        }
        return Int64(exactly: size)
    }

    // MARK: Refusals

    static let rebuildAdvice = "rebuild the plugin with this program's Nigh and the same Swift toolchain"
    private static let ownerAdvice =
        "a plugin must belong to you or to the system: copy it to a folder of your own"
    static let reportAdvice = "report this to the author of the plugin"

    /// Returns the error that says why the file is refused.
    func refusal(_ reason: String, advice: String? = nil) -> NighError {
        NighError(.loadingPlugin, .unavailable("\(path) is refused: \(reason)"), advice: advice)
    }
}
