import NighLoop

/// The options of `lab peer`.
struct PeerOptions {
    static let help = """
        usage: lab peer --name NAME [--transport SPEC] [--role peer|server|client] [--service NAME]
                        [--identity FILE] [--info KEY=VALUE]… [--meet] [--mesh] [--relays] [--unencrypted]
                        [--grace SECONDS] [--exchange COUNT PAUSE]

        One session, driven by lines on its input, telling what happens as lines on its output.

          --transport  as every program takes it: tcp, tcp:mdns=embedded,port=4000 (default: tcp)
          --identity   a file that keeps who it is; without one it is somebody new each time
          --meet       invite everybody who is found
          --mesh       become connected to everybody to whom one of its peers is connected
          --relays     carry pipes for everybody, and let everybody carry pipes
          --unencrypted
                       talk in the clear, to those alone who do as well
          --numbers    show the numbers that others ask
          --grace      how long a conversation without a link waits for another one (default: 10)
          --exchange   take no commands; send COUNT numbered messages, with PAUSE milliseconds between two, to everybody
                       who gets connected, and end when all of them have gone and as many have come

        Commands:
          invite PEER                 ask a peer for a conversation
          call ADDRESS                ask whoever answers there
          leave PEER                  end the conversation
          send PEER COUNT SIZE PAUSE  send COUNT (or `on`: until hushed) numbered messages of SIZE bytes, with so many
                                      milliseconds between two
          show PEER PAUSE             send numbered values unreliably, one every PAUSE milliseconds, until hushed
          ask PEER COUNT              ask numbered questions and call an actor with numbers, COUNT at once, until hushed
          hush                        end all sending and asking
          ping PEER                   measure a round trip
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
          asked NUMBER                | closed
        """

    struct UsageError: Error {
        let message: String
    }

    var name = ""
    var transport = "tcp"
    var role = SessionRole.peer
    var service: ServiceName = "lab"
    var identity: String?
    var info: [String: String] = [:]
    var meets = false
    var isMesh = false
    var hasRelays = false
    var isEncrypted = true
    var showsNumbers = false
    var grace: Duration?
    var exchange: Exchange?
    var wantsHelp = false

    init(_ arguments: [String]) throws(UsageError) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            switch argument {
            case "--help", "-h": wantsHelp = true
            case "--meet": meets = true
            case "--mesh": isMesh = true
            case "--relays": hasRelays = true
            case "--unencrypted": isEncrypted = false
            case "--numbers": showsNumbers = true
            case "--grace":
                guard let seconds = Int(try Self.value(of: argument, &rest)), seconds >= 0 else {
                    throw UsageError(message: "--grace takes a number of seconds")
                }
                grace = .seconds(seconds)
            case "--exchange":
                guard let count = UInt64(try Self.value(of: argument, &rest)),
                    let pause = Int(try Self.value(of: argument, &rest)), count > 0, pause >= 0
                else { throw UsageError(message: "--exchange takes a number of messages, and milliseconds") }
                exchange = Exchange(count: count, pause: pause)
            case "--name": name = try Self.value(of: argument, &rest)
            case "--transport": transport = try Self.value(of: argument, &rest)
            case "--identity": identity = try Self.value(of: argument, &rest)
            case "--role":
                let text = try Self.value(of: argument, &rest)
                guard let role = SessionRole(rawValue: text) else {
                    throw UsageError(message: "there is no role \"\(text)\"")
                }
                self.role = role
            case "--service":
                let text = try Self.value(of: argument, &rest)
                guard let service = ServiceName(text) else {
                    throw UsageError(message: "\"\(text)\" is not a service name")
                }
                self.service = service
            case "--info":
                guard let pair = Self.pair(try Self.value(of: argument, &rest)) else {
                    throw UsageError(message: "--info takes KEY=VALUE")
                }
                info[pair.key] = pair.value
            default: throw UsageError(message: "unknown argument \"\(argument)\"")
            }
        }
        if name.isEmpty, !wantsHelp { throw UsageError(message: "--name is missing") }
    }

    /// Splits `KEY=VALUE`.
    static func pair(_ text: some StringProtocol) -> (key: String, value: String)? {
        guard let sign = text.firstIndex(of: "=") else { return nil }
        return (String(text[..<sign]), String(text[text.index(after: sign)...]))
    }

    private static func value(
        of option: String, _ rest: inout ArraySlice<String>
    ) throws(UsageError) -> String {
        guard let text = rest.popFirst() else { throw UsageError(message: "\(option) needs a value") }
        return text
    }
}
