import ChildPrograms
import Glibc
import NighTestKit
import Testing

/// Tests plugins that lie in folders and are loaded when their scheme is asked for.
@Suite("Plugin folders", .callsPrograms) struct PluginFolderTests {
    private let user = NighUser()
    private let folder = TemporaryFolder()
    /// What every `ForeignLibrary` prints when it is loaded.
    private let hasRun = "its code has run"

    private func run(_ arguments: String..., folders: String? = nil) throws -> NighCall {
        let child = try Child(
            "nigh", arguments,
            environment: [
                "XDG_DATA_HOME": user.folder.path, "NO_COLOR": "", "NIGH_PLUGIN_PATH": folders ?? folder.path,
            ])
        return try NighCall(finishing: child)
    }

    @Test("A plugin is loaded only on request, and is found by its name")
    func lazily() throws {
        try ForeignLibrary().build(to: "\(folder.path)/odd.so")
        let other = try run("transports", "-t", "memory")
        #expect(other.status == 0 && other.errors.isEmpty, "\(other.errors)")
        let asked = try run("transports", "-t", "odd")
        #expect(asked.status == 2 && asked.errors.first == hasRun)
        #expect(
            asked.errors.last?.contains("--transport: loading a plugin: \(folder.path)/odd.so is refused")
                == true)
    }

    @Test("An unknown transport is reported with the known ones, including those in plugin folders")
    func unknown() throws {
        try ForeignLibrary().build(to: "\(folder.path)/odd.so")
        let call = try run("transports", "-t", "pigeon")
        #expect(call.status == 2 && call.errors.count == 1)
        #expect(
            call.errors.first?.contains("known are: bluetooth, memory, nats, odd, serial, tcp") == true,
            "\(call.errors)")
    }

    @Test("nigh transports shows refused plugins with the reason, and all others as well")
    func shown() throws {
        try ForeignLibrary(defines: ["INTERFACE": "7"]).build(to: "\(folder.path)/odd.so")
        try ForeignLibrary().build(to: "\(folder.path)/libNamedAsItWasBuilt.so")
        try ForeignLibrary().build(to: "\(folder.path)/tcp.so")
        let words = try run("transports")
        #expect(words.status == 0)
        #expect(words.lines.contains("\(folder.path)/odd.so"))
        #expect(
            words.lines.contains {
                $0.hasPrefix("  refused: ") && $0.contains("version 7 of the plugin interface")
            })
        #expect(words.lines.contains { $0.contains("its name is not a scheme") })
        #expect(words.lines.contains { $0.contains("is the scheme of a built-in transport") })
        #expect(words.lines.contains { $0.hasPrefix("memory ") })
        let call = try run("transports", "--json")
        try call.expectSchema("transports")
        let refusals = try #require(try call.object()["refusals"] as? [[String: Any]])
        #expect(
            refusals.compactMap { $0["path"] as? String }.sorted()
                == ["libNamedAsItWasBuilt.so", "odd.so", "tcp.so"].map { "\(folder.path)/\($0)" })
        try run("transports", "--json-lines").expectSchema("transports", lines: true)
    }

    @Test("A plugin in a folder never replaces a built-in transport")
    func builtIn() throws {
        try ForeignLibrary().build(to: "\(folder.path)/memory.so")
        let call = try run("transports", "-t", "memory")
        #expect(call.status == 0 && call.errors.isEmpty && call.lines.count > 1, "\(call.errors)")
    }

    @Test("Two plugins of one scheme are an error that names both, unless they are one file")
    func twice() throws {
        let unix = try UnixPlugin()
        let other = TemporaryFolder()
        let (first, second) = ("\(folder.path)/unix.so", "\(other.path)/unix.so")
        try unix.install(to: first)
        try unix.install(to: second)
        let both = try run("transports", "-t", unix.spec, folders: "\(folder.path):\(other.path)")
        #expect(both.status == 2 && both.errors.count == 1)
        #expect(
            both.errors.first?.contains("\(first) and \(second) both provide a transport \"unix\"") == true)

        let named = try run("transports", "--plugin", second, "-t", unix.spec)
        #expect(named.status == 2 && named.errors.count == 1)
        #expect(
            named.errors.first?.contains("\(second) and \(first) both provide a transport \"unix\"") == true)

        let twiceNamed = try run("transports", "--plugin", first, "--plugin", second, folders: "")
        #expect(twiceNamed.status == 2 && twiceNamed.errors.count == 1)
        #expect(twiceNamed.errors.first?.contains("\(first) and \(second) both provide") == true)

        unlink(second)
        symlink(first, second)
        let one = try run(
            "transports", "--plugin", second, "-t", unix.spec, folders: "\(folder.path):\(other.path)")
        #expect(one.status == 0, "\(one.errors)")
    }

    @Test("A file that is named after another scheme is refused, with the right name")
    func misnamed() throws {
        let unix = try UnixPlugin()
        try unix.install(to: "\(folder.path)/linux.so")
        let call = try run("transports", "-t", "linux")
        #expect(call.status == 2 && call.errors.count == 1)
        #expect(
            call.errors.first?.contains("it is named after \"linux\", but provides \"unix\"; name it unix.so")
                == true,
            "\(call.errors)")
    }

    @Test("Without NIGH_PLUGIN_PATH the user's own folder is used, and the path and version are shown")
    func ownFolder() throws {
        let unix = try UnixPlugin()
        let own = "\(user.dataFolder)/plugins"
        mkdir(user.dataFolder, 0o700)
        mkdir(own, 0o700)
        try unix.install(to: "\(own)/unix.so")
        let call = try user.run("transports", "--json", "-t", unix.spec)
        try call.expectSchema("transports")
        let transports = try #require(try call.object()["transports"] as? [[String: Any]])
        let plugin = try #require(transports.first?["plugin"] as? [String: String])
        #expect(plugin == ["path": "\(own)/unix.so", "version": "1.0"])
        #expect(transports.first?["works"] as? Bool == true)
    }
}
