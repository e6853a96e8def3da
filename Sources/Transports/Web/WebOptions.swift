import NighCore

/// Settings for the transport `web`.
struct WebOptions: Hashable, Sendable {
    /// The port to listen on; nil means 8080, or a free one if that is in use.
    var port: UInt16?
    /// The name of the one network interface to use; nil for all that lead to a local network.
    var interface: String?
    /// The most bytes per second that one guest may send.
    var rate = 64 << 20
    /// The most bytes that one guest may send and be sent in all.
    var byteLimit = 64 << 30

    static let usualPort: UInt16 = 8080

    /// The options that a spec may carry, for the registry.
    static let keys = [
        "port": "where to listen; by default 8080, or a free port if that is in use",
        "interface": "the one network interface to use, such as wlan0; by default all of local networks",
        "rate": "the most bytes per second that a guest may send, 64M by default",
        "bytes": "the most bytes that a guest may send and receive in all, 64G by default",
    ]

    init() {}

    /// Reads the options of a spec.
    init(_ spec: TransportSpec) throws(NighError) {
        if let text = spec.options["port"] {
            guard let port = UInt16(text) else {
                throw Self.invalid("port \"\(text)\"", "a port is a number from 0 to 65535; 0 is a free one")
            }
            self.port = port
        }
        if let name = spec.options["interface"] {
            guard (1...15).contains(name.utf8.count), !name.contains("/"), !name.contains(" ") else {
                throw Self.invalid("interface \"\(name)\"", "`ip link` lists the interfaces")
            }
            interface = name
        }
        if let text = spec.options["rate"] { rate = try Self.size(text, "rate") }
        if let text = spec.options["bytes"] { byteLimit = try Self.size(text, "bytes") }
    }

    private static func size(_ text: String, _ key: String) throws(NighError) -> Int {
        let units: [Character: Int] = ["K": 1 << 10, "M": 1 << 20, "G": 1 << 30]
        let unit = text.last.flatMap { units[$0] }
        let number = Int(unit == nil ? text[...] : text.dropLast())
        guard let number, number > 0, let size = Optional(number.multipliedReportingOverflow(by: unit ?? 1)),
            !size.overflow
        else { throw invalid("\(key) \"\(text)\"", "write a number of bytes, as in 500000, 64M or 2G") }
        return size.partialValue
    }

    private static func invalid(_ what: String, _ advice: String) -> NighError {
        NighError(.configuring, .invalid(what), transport: WebTransport.schemeName, advice: advice)
    }
}
