import Arguments
import Nigh
import NighCore
import NighPlugins

/// The transports a command can have: those of this package, those of plugins that were named, and those of plugins in folders.
public struct PluginChoice: Sendable {
    private let files: [String]
    private let checks: Bool

    /// Only what is built in or found.
    public static let none = PluginChoice(files: [])

    /// The plugins in these files besides. With `checks`, every transport is held to its contract; without, as the program was built.
    public init(files: [String], checks: Bool = false) {
        self.files = files
        self.checks = checks
    }

    /// The option that names plugins.
    public static let options = OptionGroup(
        "Plugins",
        Option(
            repeated: "plugin", .file("FILE.so"),
            "takes the transport of this plugin in; those in a plugin folder are found by their scheme")
    ) { PluginChoice(files: $0) }

    /// The same for commands with a session, which can be told to watch its transports.
    public static let sessionOptions = OptionGroup(
        "Plugins", options,
        Option(
            flag: "check-transports",
            "watches that transports keep to their contract; one that does not is cut off, and the rule named"
        )
    ) { PluginChoice(files: $0.files, checks: $1) }

    /// What there is to choose from: with all that were named, and of those in folders with these schemes. Reads disks. Fails for plugins
    /// that are refused; `subject` is the option or operand that asks for the schemes.
    public func registry(with schemes: [String], for subject: String) throws(Misuse) -> TransportRegistry {
        let shelf = try shelf()
        do throws(NighError) {
            return try shelf.registry(extending: .standard, with: schemes)
        } catch {
            throw Misuse("\(subject): \(error)")
        }
    }

    /// The schemes in a list of transports; none where nobody gave one.
    private static func schemes(in list: String?) throws(Misuse) -> [String] {
        guard let list else { return [] }
        do throws(NighError) {
            return try TransportSpec.list(parsing: list).map(\.scheme)
        } catch {
            throw Misuse("--transport: \(error)")
        }
    }

    /// All that can be had.
    public func shelf() throws(Misuse) -> PluginShelf {
        do throws(NighError) {
            return try PluginShelf(files: files)
        } catch {
            throw Misuse("--plugin: \(error)")
        }
    }

    /// The transports in `list`; where that is nil, everything that is built in or was named and reaches beyond this program.
    public func makeAll(_ list: String?) throws(Misuse) -> [any Transport] {
        let registry = try registry(with: Self.schemes(in: list), for: "--transport")
        let everything = registry.entries.map(\.scheme).filter { $0 != MemoryTransport.schemeName }
        do throws(NighError) {
            let made = try registry.makeAll(list ?? everything.joined(separator: ","))
            return checks ? made.map { CheckedTransport($0) } : made
        } catch {
            throw Misuse("--transport: \(error)")
        }
    }
}

extension Sequence<any Transport> {
    /// What was broken of the contract by those that are watched, one error each. After the session's end that is how the last is heard of:
    /// nobody is told of it.
    public var breaches: [NighError] { compactMap { ($0 as? CheckedTransport)?.breach } }
}
