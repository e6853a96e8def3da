import Glibc
import NighCore
import NighSystem

/// The folders in which a program finds plugins by itself. Each file is named after its scheme: `unix.so`.
public struct PluginFolders: Hashable, Sendable {
    /// The folders to look in. If two of them have a plugin of one scheme, none takes precedence: that is an error.
    public let paths: [String]

    /// Creates a list of folders. Those that do not exist count as empty.
    public init(paths: [String]) { self.paths = paths }

    /// The folders of this user and this system: those that `NIGH_PLUGIN_PATH` lists, separated by colons. If that is
    /// unset, `nigh/plugins` in `$XDG_DATA_HOME` (or `~/.local/share`), `/usr/local/lib` and `/usr/lib`.
    public static var standard: PluginFolders {
        PluginFolders(
            listed: getenv("NIGH_PLUGIN_PATH").map { String(cString: $0) },
            userData: DataFolder.ofThisUser)
    }

    /// Creates the folders of `standard` for these two values.
    init(listed: String?, userData: String?) {
        if let listed {
            paths = listed.split(separator: ":").map(String.init)
        } else {
            let system = ["/usr/local/lib", "/usr/lib"].map { $0 + "/nigh" }
            paths = ([userData].compactMap(\.self) + system).map { $0 + "/plugins" }
        }
    }

    /// A plugin in one of the folders.
    struct Plugin: Hashable, Sendable {
        /// The scheme that its file is named after.
        let scheme: String
        let file: PluginFile

        /// Loads the plugin. Fails if it is refused, or if its scheme is not the one in its name.
        func load() throws(NighError) -> LoadedPlugin {
            let plugin = try LoadedPlugin(path: file.path)
            guard plugin.scheme == scheme else {
                throw file.refusal(
                    "it is named after \"\(scheme)\", but provides \"\(plugin.scheme)\"",
                    advice: "name it \(plugin.scheme).so")
            }
            return plugin
        }
    }

    /// Returns the plugins in the folders, and the libraries whose name is not a scheme, so that nobody finds them. It
    /// reads nothing but the names.
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
