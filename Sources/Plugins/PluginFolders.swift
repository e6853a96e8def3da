import Glibc
import NighCore

/// The folders in which plugins lie that a program finds by itself, each file named after its scheme: `unix.so`.
public struct PluginFolders: Hashable, Sendable {
    /// Where to look. Of two that have a plugin of one scheme none comes first: that is an error.
    public let paths: [String]

    /// These folders; those that are not there count as empty.
    public init(paths: [String]) { self.paths = paths }

    /// Those of this user and this system: what `NIGH_PLUGIN_PATH` lists, separated by colons; where that is unset, `nigh/plugins` in
    /// `$XDG_DATA_HOME` (or `~/.local/share`), `/usr/local/lib` and `/usr/lib`.
    public static var standard: PluginFolders {
        PluginFolders(
            listed: getenv("NIGH_PLUGIN_PATH").map { String(cString: $0) },
            userData: DataFolder.ofThisUser)
    }

    /// What `standard` is for these two.
    init(listed: String?, userData: String?) {
        if let listed {
            paths = listed.split(separator: ":").map(String.init)
        } else {
            let system = ["/usr/local/lib", "/usr/lib"].map { $0 + "/nigh" }
            paths = ([userData].compactMap(\.self) + system).map { $0 + "/plugins" }
        }
    }

    /// A plugin that lies in a folder.
    struct Plugin: Hashable, Sendable {
        /// What its file is named after.
        let scheme: String
        let file: PluginFile

        /// Loads it. Fails where it is refused, and where it brings something else than its name says.
        func load() throws(NighError) -> LoadedPlugin {
            let plugin = try LoadedPlugin(path: file.path)
            guard plugin.scheme == scheme else {
                throw file.refusal(
                    "it is named after \"\(scheme)\" and brings \"\(plugin.scheme)\"",
                    advice: "name it \(plugin.scheme).so")
            }
            return plugin
        }
    }

    /// What lies there: the plugins, and libraries under a name that is no scheme, where nobody finds them. Nothing is looked at but the
    /// names.
    func contents() -> (plugins: [Plugin], misnamed: [String]) {
        var plugins: [Plugin] = []
        var misnamed: [String] = []
        for folder in paths {
            for name in Self.entries(of: folder).sorted() where name.hasSuffix(".so") {
                let (path, scheme) = ("\(folder)/\(name)", String(name.dropLast(3)))
                if TransportSpec.isScheme(scheme) {
                    plugins.append(Plugin(scheme: scheme, file: PluginFile(path)))
                } else {
                    misnamed.append(path)
                }
            }
        }
        return (plugins, misnamed)
    }

    private static func entries(of folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            names.append(
                withUnsafeBytes(of: &entry.pointee.d_name) {
                    String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
                })
        }
        return names
    }
}
