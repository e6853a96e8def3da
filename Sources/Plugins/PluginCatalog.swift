import NighCore

/// The plugins that a program can choose from: the named ones, loaded at once, and those in folders, loaded when their
/// scheme is asked for.
public struct PluginCatalog: Sendable {
    /// The plugins that were named, in their order.
    public let named: [LoadedPlugin]
    private let found: [PluginFolders.Plugin]
    private let misnamed: [String]

    /// Loads the plugins in `files` and looks into `folders`. It reads the disk, so do not call it on a session's loop.
    /// Fails for the first of `files` that is refused, and if two of them have the same scheme. The same file given
    /// twice counts once.
    public init(files: [String] = [], folders: PluginFolders = .standard) throws(NighError) {
        var named: [LoadedPlugin] = []
        for path in files where !named.contains(where: { PluginFile($0.path).isSame(as: PluginFile(path)) }) {
            let plugin = try LoadedPlugin(path: path)
            if let other = named.first(where: { $0.scheme == plugin.scheme }) {
                throw Self.schemeClash(plugin.scheme, other.path, path)
            }
            named.append(plugin)
        }
        self.named = named
        (found, misnamed) = folders.contents()
    }

    /// Makes the transports that a list such as `unix:folder=/tmp/us,tcp` asks for, from `registry` and from these
    /// plugins.
    public func makeAll(
        _ list: String, extending registry: TransportRegistry
    ) throws(NighError) -> [any Transport] {
        let schemes = try TransportSpec.list(parsing: list).map(\.scheme)
        return try self.registry(extending: registry, with: schemes).makeAll(list)
    }

    /// Returns `registry` with the plugins that ``plugins(for:beside:)`` returns.
    public func registry(
        extending registry: TransportRegistry, with schemes: [String]
    ) throws(NighError) -> TransportRegistry {
        var extended = registry
        for plugin in try plugins(for: schemes, beside: registry) { try extended.register(plugin.entry) }
        return extended
    }

    /// Returns all named plugins, and of the others those for `schemes`, except for schemes that `registry` has. It
    /// loads those that are not loaded yet, so it reads the disk. Fails if one of the plugins is refused, if two have
    /// the same scheme, if a named one has a scheme that `registry` has, and for a scheme that is found nowhere.
    public func plugins(
        for schemes: [String], beside registry: TransportRegistry
    ) throws(NighError) -> [LoadedPlugin] {
        var plugins = named
        for plugin in named {
            guard registry.entries.contains(where: { $0.scheme == plugin.scheme }) == false else {
                throw Self.builtIn(plugin.scheme, plugin.path)
            }
            try checkIsUnique(plugin.scheme)
        }
        let builtIn = registry.entries.map(\.scheme)
        for scheme in schemes where !(builtIn + plugins.map(\.scheme)).contains(scheme) {
            guard let plugin = found.first(where: { $0.scheme == scheme }) else {
                throw Self.unknown(scheme, among: builtIn + (named.map(\.scheme) + found.map(\.scheme)))
            }
            try checkIsUnique(scheme)
            plugins.append(try plugin.load())
        }
        return plugins
    }

    /// The result of examining a plugin.
    public enum Examination: Sendable {
        /// The plugin can be used.
        case usable(LoadedPlugin)
        /// The plugin cannot be used, for this reason.
        case refused(path: String, NighError)
    }

    /// Loads all plugins and returns the result of each, for a person who wants to see them. A plugin is refused if
    /// `registry` has its scheme. A refused plugin does not hide the others.
    public func examineAll(beside registry: TransportRegistry) -> [Examination] {
        let all =
            named.map { (scheme: $0.scheme, path: $0.path, plugin: Result<_, NighError>.success($0)) }
            + found.filter { plugin in !named.contains { PluginFile($0.path).isSame(as: plugin.file) } }
            .map { plugin in
                (plugin.scheme, plugin.file.path, Result { () throws(NighError) in try plugin.load() })
            }
        let examined = all.map { scheme, path, plugin in
            do throws(NighError) {
                try checkIsUnique(scheme)
                if registry.entries.contains(where: { $0.scheme == scheme }) {
                    throw Self.builtIn(scheme, path)
                }
                return Examination.usable(try plugin.get())
            } catch {
                return .refused(path: path, error)
            }
        }
        return examined + misnamed.map { .refused(path: $0, Self.badName($0)) }
    }

    // MARK: Refusals

    private func checkIsUnique(_ scheme: String) throws(NighError) {
        let files =
            named.filter { $0.scheme == scheme }.map { PluginFile($0.path) }
            + found.filter { $0.scheme == scheme }.map(\.file)
        guard let first = files.first, let other = files.first(where: { !$0.isSame(as: first) }) else {
            return
        }
        throw Self.schemeClash(scheme, first.path, other.path)
    }

    private static func schemeClash(_ scheme: String, _ first: String, _ second: String) -> NighError {
        NighError(
            .loadingPlugin, .unavailable("\(first) and \(second) both provide a transport \"\(scheme)\""),
            advice:
                "keep one of them; NIGH_PLUGIN_PATH names the folders to look in instead of the usual ones")
    }

    private static func builtIn(_ scheme: String, _ path: String) -> NighError {
        NighError(
            .loadingPlugin,
            .unavailable("\(path) is refused: \"\(scheme)\" is the scheme of a built-in transport"),
            advice: "the plugin needs another scheme")
    }

    private static func badName(_ path: String) -> NighError {
        NighError(
            .loadingPlugin, .unavailable("\(path) is ignored: its name is not a scheme"),
            advice: "name a plugin in this folder after its scheme, as in unix.so")
    }

    private static func unknown(_ scheme: String, among known: [String]) -> NighError {
        NighError(
            .configuring, .unavailable("there is no transport \"\(scheme)\""),
            advice: "known are: \(Set(known).sorted().joined(separator: ", "))")
    }
}
