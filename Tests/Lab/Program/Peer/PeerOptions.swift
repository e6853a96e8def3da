import NighLoop

/// The options of `lab peer`.
struct PeerOptions {
    static let help = """
        usage: lab peer --name NAME [OPTION…]

        One session, driven by lines on its input, telling what happens as lines on its output.

          --transport SPEC     as every program takes it: tcp, tcp:mdns=embedded,port=4000 (default: tcp)
          --service NAME       (default: lab)
          --identity FILE      a file that keeps who it is; without one it is somebody new each time
          --info KEY=VALUE     may be given several times
          --meet               invite everybody who is found
          --mesh               become connected to everybody to whom one of its peers is connected
          --relays             carry pipes for everybody, and let everybody carry pipes
          --unencrypted        talk in the clear, to those alone who do as well
          --grace SECONDS      how long a conversation without a link waits for another one (default: 10)
          --exchange COUNT     take no commands; send COUNT numbered messages, one every 20 ms, to everybody who gets
                               connected, and end when all of them have gone and as many have come

        Commands:
          invite PEER | leave PEER | ping PEER | call ADDRESS
          send PEER COUNT SIZE PAUSE  send COUNT (or `on`: until hushed) numbered messages of SIZE bytes, with so many
                                      milliseconds between two
          show PEER PAUSE             send numbered values unreliably, one every PAUSE milliseconds, until hushed
          hush                        end all sending
          advertise on|off, browse on|off, info KEY=VALUE…
          statistics                  print what was counted
          quit                        leave in good order; so do Ctrl-C and the end of the input

        Events:
          ready ID RUN                | found ID ROUTE,… KEY=VALUE,… NAME | lost ID
          state ID FROM TO CAUSE      | invited ID | uninvited ID CAUSE   | suspected ID true|false
          received ID RUN NUMBER      | sent ID NUMBER                    | damaged ID
          pong ID MICROSECONDS        | called ADDRESS ID | left ID       | failed WHAT CAUSE
          listening ADDRESS…          | transport SCHEME up|down CAUSE    | trouble ERROR
          advertised NAME             | count NAME VALUE                  | quality ID PER-CENT
          over ID SCHEME              | value ID NUMBER                   | packets ID true|false
          closed
        """

    private static let allFlags: Set = [
        "--help", "-h", "--meet", "--mesh", "--relays", "--unencrypted",
    ]
    private static let allWithValues: Set = [
        "--name", "--transport", "--service", "--identity", "--info", "--grace", "--exchange",
    ]

    private let flags: Set<String>
    private let values: [String: [String]]

    let service: ServiceName
    /// Ends once it has exchanged that many messages with everybody.
    let exchangeCount: UInt64?
    let grace: Duration?
    let info: [String: String]

    init(_ arguments: [String]) throws {
        var flags: Set<String> = []
        var values: [String: [String]] = [:]
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            if Self.allFlags.contains(argument) {
                flags.insert(argument)
            } else if Self.allWithValues.contains(argument) {
                guard let value = rest.popFirst() else { throw Failure("\(argument) needs a value") }
                values[argument, default: []].append(value)
            } else {
                throw Failure("unknown argument \"\(argument)\"")
            }
        }
        func number(_ option: String) throws -> UInt64? {
            guard let text = values[option]?.last else { return nil }
            guard let number = UInt64(text) else { throw Failure("\(option) takes a number") }
            return number
        }
        guard let service = ServiceName(values["--service"]?.last ?? "lab") else {
            throw Failure("this is not a service name")
        }
        (self.service, self.flags, self.values) = (service, flags, values)
        exchangeCount = try number("--exchange")
        grace = try number("--grace").map { .seconds($0) }
        info = Self.pairs(values["--info"] ?? [])
        guard values["--name"] != nil || wantsHelp else { throw Failure("--name is missing") }
    }

    var name: String { values["--name"]?.last ?? "" }
    var transport: String { values["--transport"]?.last ?? "tcp" }
    var identity: String? { values["--identity"]?.last }
    var meets: Bool { flags.contains("--meet") }
    var isMesh: Bool { flags.contains("--mesh") }
    var hasRelays: Bool { flags.contains("--relays") }
    var isEncrypted: Bool { !flags.contains("--unencrypted") }
    var wantsHelp: Bool { flags.contains("--help") || flags.contains("-h") }

    /// Splits each `KEY=VALUE`.
    static func pairs(_ texts: some Sequence<some StringProtocol>) -> [String: String] {
        var pairs: [String: String] = [:]
        for parts in texts.map({ $0.split(separator: "=", maxSplits: 1) }) where parts.count == 2 {
            pairs[String(parts[0])] = String(parts[1])
        }
        return pairs
    }
}
