import Arguments
import NighLoop
import NighCore
import NighPlugins

/// The transports that a command can use: those of this package, of the plugins that were named, and of the plugins in
/// folders.
public struct PluginChoice: Sendable {
    /// The paths of the plugins that were named.
    public let files: [String]
    private let checks: Bool

    /// Only the transports that are built in or found in folders.
    public static let none = PluginChoice(files: [])

    /// Adds the plugins in these files.
    ///
    /// With `checks`, every transport is checked against its contract. Without, that depends on how the program was
    /// built.
    public init(files: [String], checks: Bool = false) {
        self.files = files
        self.checks = checks
    }

    /// The option that names plugins.
    public static let options = OptionGroup(
        "Plugins", isShared: true,
        Option(
            repeated: "plugin", .file("FILE.so"),
            "adds the transport of this plugin; plugins in a plugin folder are found by their scheme")
    ) { PluginChoice(files: $0) }

    /// The plugin options of commands with a session, which can also check transports against their contract.
    public static let sessionOptions = OptionGroup(
        "Plugins", isShared: true, options,
        Option(
            flag: "check-transports",
            "checks that transports keep their contract; one that does not is cut off, and the rule is named"
        )
    ) { PluginChoice(files: $0.files, checks: $1) }

    /// Returns the transports to choose from: those of all named plugins, and those with these schemes of the plugins
    /// in folders.
    ///
    /// Reads files. Throws if a plugin is refused. `subject` is the option or operand that asks for the schemes.
    public func registry(with schemes: [String], for subject: String) throws(UsageError) -> TransportRegistry
    {
        let catalog = try catalog()
        do throws(NighError) {
            return try catalog.registry(extending: .standard, with: schemes)
        } catch {
            throw UsageError("\(subject): \(error)")
        }
    }

    /// Returns the schemes in a list of transports, or none if there is no list.
    private static func schemes(in list: String?) throws(UsageError) -> [String] {
        guard let list else { return [] }
        do throws(NighError) {
            return try TransportSpec.list(parsing: list).map(\.scheme)
        } catch {
            throw UsageError("--transport: \(error)")
        }
    }

    /// Returns all plugins that there are to choose from.
    public func catalog() throws(UsageError) -> PluginCatalog {
        do throws(NighError) {
            return try PluginCatalog(files: files)
        } catch {
            throw UsageError("--plugin: \(error)")
        }
    }

    /// Creates the transports in `list`. If that is nil, creates all that are built in or were named and reach beyond
    /// this program.
    public func makeAll(_ list: String?) throws(UsageError) -> [any Transport] {
        let registry = try registry(with: Self.schemes(in: list), for: "--transport")
        do throws(NighError) {
            let made = try registry.makeAll(list ?? registry.reachingOtherPrograms)
            return checks ? made.map { CheckedTransport($0) } : made
        } catch {
            throw UsageError("--transport: \(error)")
        }
    }
}

extension Sequence<any Transport> {
    /// The rules that checked transports have broken, one error for each transport.
    ///
    /// The session does not report a rule that is broken at its very end, so the program asks for it here.
    public var breaches: [NighError] { compactMap { ($0 as? CheckedTransport)?.breach } }
}
