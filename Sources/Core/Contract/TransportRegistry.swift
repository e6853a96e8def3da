/// The transports that a program can choose from by name.
///
/// A value: create a `TransportRegistry()`, register the program's transports (those of this package and its own), and
/// make transports from specs. It can be used on any thread.
public struct TransportRegistry: Sendable {
    /// A transport that the registry can make.
    public struct Entry: Sendable {
        /// The scheme of the transport.
        public let scheme: String
        /// A description of the transport, in one line.
        public let summary: String
        /// The options that the transport takes, each with one line of explanation.
        public let options: [String: String]
        /// Whether the transport can do nothing without options, such as the address of a server. Then it is used only
        /// where somebody names it.
        public let needsOptions: Bool
        /// Makes the transport. Unknown keys have been rejected before; checking the values is up to this closure.
        public let make: @Sendable (TransportSpec) throws(NighError) -> any Transport

        /// Creates an entry.
        public init(
            scheme: String, summary: String, options: [String: String] = [:], needsOptions: Bool = false,
            make: @escaping @Sendable (TransportSpec) throws(NighError) -> any Transport
        ) {
            self.scheme = scheme
            self.summary = summary
            self.options = options
            self.needsOptions = needsOptions
            self.make = make
        }
    }

    private var entriesByScheme: [String: Entry] = [:]

    /// Creates a registry without entries.
    public init() {}

    /// Creates a registry of these entries. If two have the same scheme, the later one stays.
    public init(_ entries: [Entry]) {
        for entry in entries { entriesByScheme[entry.scheme] = entry }
    }

    /// All entries, sorted by scheme.
    public var entries: [Entry] { entriesByScheme.values.sorted { $0.scheme < $1.scheme } }

    /// Adds a transport. Fails if the scheme is already registered or is not valid.
    public mutating func register(_ entry: Entry) throws(NighError) {
        guard TransportSpec.isScheme(entry.scheme) else {
            throw NighError(
                .configuring, .invalid("scheme \"\(entry.scheme)\""),
                advice: "a scheme is 1 to 15 characters of a-z and 0-9, and begins with a letter")
        }
        guard entriesByScheme[entry.scheme] == nil else {
            throw NighError(
                .configuring, .invalid("scheme \"\(entry.scheme)\", which is registered already"),
                advice: "choose another scheme")
        }
        entriesByScheme[entry.scheme] = entry
    }

    /// Makes the transport that `spec` asks for. Fails for an unknown scheme or option, with a list of those that
    /// exist.
    public func make(_ spec: TransportSpec) throws(NighError) -> any Transport {
        guard let entry = entriesByScheme[spec.scheme] else {
            let known = entries.map(\.scheme).joined(separator: ", ")
            throw NighError(
                .configuring, .unavailable("there is no transport \"\(spec.scheme)\""),
                advice: known.isEmpty ? "none is registered" : "known are: \(known)")
        }
        let unknown = spec.options.keys.filter { entry.options[$0] == nil }.sorted()
        guard unknown.isEmpty else {
            let known = entry.options.keys.sorted().joined(separator: ", ")
            throw NighError(
                .configuring, .invalid("option \"\(unknown[0])\""), transport: spec.scheme,
                advice: known.isEmpty ? "it takes no options" : "known are: \(known)")
        }
        return try entry.make(spec)
    }

    /// Makes the transports that a list such as `tcp,bluetooth:adapter=hci1` asks for. Fails at the first one that
    /// cannot be made, and if a scheme appears twice.
    public func makeAll(_ list: String) throws(NighError) -> [any Transport] {
        var transports: [any Transport] = []
        for spec in try TransportSpec.list(parsing: list) {
            guard !transports.contains(where: { $0.scheme == spec.scheme }) else {
                throw NighError(
                    .configuring, .invalid("transport \"\(spec.scheme)\", given twice in \"\(list)\""))
            }
            transports.append(try make(spec))
        }
        return transports
    }
}
