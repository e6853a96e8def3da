import ChildPrograms
import Foundation
import NighCore
import NighTestKit
import Testing

/// A library that is a plugin, or nearly one. It is written in C, so that each detail can be made wrong.
struct ForeignLibrary {
    /// The line that every one prints when it is loaded.
    static let hasRun = "its code has run"

    /// The macros that select what is wrong with it, as passed to the C compiler.
    var defines: [String: String] = [:]

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
        let flags = ["ENTRY": "nigh_transport_plugin"].merging(defines) { $1 }.map {
            "-D\($0.key)=\($0.value)"
        }
        let headers = "\(BuiltPackages.root)/Sources/Plugins/Entry/include"
        try Child.run(
            BuiltPackages.tool("clang"),
            flags + ["-shared", "-fPIC", "-I", headers, "-x", "c", "-", "-o", path],
            typing: Self.source)
    }
}

/// Tests plugins that lie in folders and are loaded when their scheme is asked for.
@Suite("Plugin folders", .callsPrograms) struct PluginFolderTests {
    private let user = NighUser()
    private let folder = TemporaryFolder()
    /// Runs `nigh transports` with this folder of plugins, or with others.
    private func transports(
        _ options: String = "", folders: String? = nil, status: Int32 = 0, says said: String? = nil
    ) throws -> NighCall {
        var environment = user.environment
        environment["NIGH_PLUGIN_PATH"] = folders ?? folder.path
        let words = options.split(separator: " ").map(String.init)
        return try Child("nigh", ["transports"] + words, environment: environment).finish(
            status: status, says: said)
    }

    /// Expects that it refuses with one sentence that says `words`.
    private func expectRefusal(_ words: String, _ options: String, folders: String? = nil) throws {
        let call = try transports(options, folders: folders, status: 2, says: words)
        #expect(call.errors.count == 1, "\(call)")
    }

    @Test func `A plugin is loaded only on request, and is found by its name`() throws {
        try ForeignLibrary().build(to: "\(folder.path)/odd.so")
        #expect(try transports("-t memory").errors.isEmpty)
        let asked = try transports(
            "-t odd", status: 2, says: "--transport: loading a plugin: \(folder.path)/odd.so is refused")
        #expect(asked.errors.first == ForeignLibrary.hasRun)
        try expectRefusal("known are: bluetooth, memory, nats, odd, serial, tcp", "-t pigeon")
    }

    @Test func `nigh transports shows refused plugins with the reason, and all others as well`() throws {
        try ForeignLibrary(defines: ["INTERFACE": "7"]).build(to: "\(folder.path)/odd.so")
        for name in ["libNamedAsItWasBuilt", "tcp"] {
            try ForeignLibrary().build(to: "\(folder.path)/\(name).so")
        }
        let lines = try transports().lines
        for words in [
            "\(folder.path)/odd.so", "version 7 of the plugin interface", "its name is not a scheme",
            "is the scheme of a built-in transport", "memory ",
        ] {
            #expect(lines.contains { $0.contains(words) }, "\(words): \(lines)")
        }
        let refused = try transports("--json").json["refusals"].list.compactMap { $0["path"].string }
        #expect(
            refused.sorted()
                == ["libNamedAsItWasBuilt.so", "odd.so", "tcp.so"].map { "\(folder.path)/\($0)" })
        _ = try transports("--json-lines")
    }

    @Test func `A plugin in a folder never replaces a built-in transport`() throws {
        try ForeignLibrary().build(to: "\(folder.path)/memory.so")
        let call = try transports("-t memory")
        #expect(call.errors.isEmpty && call.lines.count > 1, "\(call.errors)")
    }

    @Test func `Two plugins of one scheme are an error that names both, unless they are one file`() throws {
        let unix = try UnixPlugin()
        let other = TemporaryFolder()
        let (first, second) = ("\(folder.path)/unix.so", "\(other.path)/unix.so")
        try unix.install(to: first)
        try unix.install(to: second)
        let both = "\(folder.path):\(other.path)"
        let words = " both provide a transport \"unix\""
        try expectRefusal("\(first) and \(second)\(words)", "-t \(unix.spec)", folders: both)
        try expectRefusal("\(second) and \(first)\(words)", "--plugin \(second) -t \(unix.spec)")
        try expectRefusal("\(first) and \(second)", "--plugin \(first) --plugin \(second)", folders: "")

        unlink(second)
        symlink(first, second)
        _ = try transports("--plugin \(second) -t \(unix.spec)", folders: both)
    }

    @Test func `A file that is named after another scheme is refused, with the right name`() throws {
        try UnixPlugin().install(to: "\(folder.path)/linux.so")
        try expectRefusal("it is named after \"linux\", but provides \"unix\"; name it unix.so", "-t linux")
    }

    @Test func `Without NIGH_PLUGIN_PATH the user's own folder is used`() throws {
        let unix = try UnixPlugin()
        let own = "\(user.dataFolder)/plugins"
        try user.know()
        mkdir(own, 0o700)
        try unix.install(to: "\(own)/unix.so")
        let transport = try user.run("transports --json -t \(unix.spec)").json["transports"][0]
        #expect(transport["plugin"]["path"].string == "\(own)/unix.so")
        #expect(transport["plugin"]["version"].string == "1.0" && transport["works"].bool == true)
    }
}

/// Tests which files are refused as plugins, and how `nigh` reports it.
@Suite("A plugin is refused", .callsPrograms) struct PluginRefusalTests {
    private let user = NighUser()
    private let folder = TemporaryFolder()
    private var path: String { "\(folder.path)/odd.so" }

    /// Returns the error of `nigh` about the file at `path`. Expects one sentence, and the status of a wrong call.
    private func refusal(of path: String? = nil) throws -> String {
        let path = path ?? self.path
        let call = try user.run("transports --plugin \(path)", status: 2)
        #expect(call.lines.isEmpty)
        let errors = call.errors.filter { $0 != ForeignLibrary.hasRun }
        #expect(errors.count == 1, "\(errors)")
        let words = errors.first ?? ""
        #expect(words.contains(path) && words.contains("loading a plugin: "), "\(words)")
        return words
    }

    /// The macros that make a library unusable, and what is then said of it.
    static let wrong: [(defines: [String: String], words: [String])] = [
        (["INTERFACE": "2"], ["version 2 of the plugin interface", "this program version 1", "rebuild"]),
        (["TOOLCHAIN": "\"Clang 1.0\""], ["another Swift toolchain (Clang 1.0)", "rebuild"]),
        (
            ["FINGERPRINT": "\"1234567812345678\""],
            ["another Nigh (version 0.2.0, interface 1234567812345678)", "rebuild"]
        ),
        (["OTHER_MARK": "1"], ["its own copy of Nigh", "NighShared"]),
        (["ENTRY": "something_else"], ["does not export nigh_transport_plugin"]),
        (["NOTHING": "1"], ["does not describe itself"]), ([:], ["provides no transport"]),
        (["LATENCY": "__builtin_nan(\"\")"], ["the times that it states"]),
        (
            ["NEEDS": "nigh_of_tomorrow"],
            ["needs nigh_of_tomorrow, which this program does not have", "rebuild"]
        ),
    ]

    @Test(arguments: wrong) func `that is an unusable library`(
        _ defines: [String: String], _ expected: [String]
    ) throws {
        try ForeignLibrary(defines: defines).build(to: path)
        let words = try refusal()
        for expected in expected { #expect(words.contains(expected), "\(words)") }
    }

    @Test func `that is not a library`() throws {
        for content in ["", "a text of some length, which nobody will take for a library, whatever its name"]
        {
            try write(Array(content.utf8)[...])
            #expect(try refusal().contains("it is not a library"))
        }
        unlink(path)
        #expect(try refusal().contains("No such file"))
        mkdir(path, 0o700)
        #expect(try refusal().contains("it is not a regular file"))
        #expect(try refusal(of: BuiltPrograms.path(of: "nigh")).contains("it cannot be loaded: "))
    }

    @Test func `that is cut off anywhere, and none of it runs`() throws {
        try ForeignLibrary().build(to: path)
        #expect(try refusal().contains("provides no transport"))
        let whole = try bytes()
        let sizes = Array(stride(from: 0, to: whole.count, by: whole.count / 40)) + [63, 64, whole.count - 1]
        for size in sizes {
            try write(whole[..<size])
            try user.fail(
                "transports --plugin \(path)", status: 2, says: size < 64 ? "it is not a library" : "cut off")
        }
    }

    private func bytes() throws -> [UInt8] { try [UInt8](Data(contentsOf: URL(filePath: path))) }

    private func write(_ bytes: ArraySlice<UInt8>) throws { try Data(bytes).write(to: URL(filePath: path)) }

    @Test func `that other users may write, and none of it runs`() throws {
        try ForeignLibrary().build(to: path)
        for mode: mode_t in [0o722, 0o720, 0o702] {
            chmod(path, mode)
            try user.fail(
                "transports --plugin \(path)", status: 2,
                says: "others may write it (mode \(String(mode, radix: 8))); `chmod go-w \(path)`")
        }
        chmod(path, 0o755)
        chmod(folder.path, 0o777)
        #expect(try refusal().contains("others may write its folder (mode 777)"))
        // A link in another folder does not help either.
        let elsewhere = TemporaryFolder()
        symlink(path, "\(elsewhere.path)/odd.so")
        #expect(
            try refusal(of: "\(elsewhere.path)/odd.so").contains("others may write its folder (mode 777)"))
        // A user who can rename the folder of the plugin can replace the plugin.
        let inner = "\(folder.path)/inner"
        mkdir(inner, 0o700)
        try #require(rename(path, "\(inner)/odd.so") == 0)
        #expect(
            try refusal(of: "\(inner)/odd.so").contains(
                "others may write \(folder.path), where it is (mode 777)"))
        chmod(folder.path, 0o1777)
        #expect(try refusal(of: "\(inner)/odd.so").contains("provides no transport"))
    }

    @Test func `that belongs to another user`() throws {
        try ForeignLibrary().build(to: path)
        // Only root can give a file away. Other users are as content with a file of root's as with their own.
        try #require(chown(path, 65_534, 65_534) == 0 || geteuid() != 0)
        let words = try refusal()
        #expect(words.contains(geteuid() == 0 ? "it belongs to user 65534" : "provides no transport"))
        // The owner of a folder can replace what is in it, even if the mode keeps all others from doing so.
        chown(path, 0, 0)
        chmod(folder.path, 0o1777)
        try #require(chown(folder.path, 65_534, 65_534) == 0 || geteuid() != 0)
        let folderWords = try refusal()
        #expect(
            folderWords.contains(
                geteuid() == 0
                    ? "\(folder.path), where it is, belongs to user 65534" : "provides no transport"))
    }
}
