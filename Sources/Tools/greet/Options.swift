import Arguments
import Nigh
import SessionArguments

/// What `greet` was asked to do.
struct Options: Sendable {
    /// Nil where nobody chose one.
    var name: DisplayName?
    /// As `TransportRegistry.makeAll` reads it.
    var transports: String
    var service: ServiceName
    /// Nil for a new one each time.
    var identity: IdentityFile?
    var addresses: [TransportAddress]
    /// Where what passes on its links is written down; nil for nowhere.
    var record: RecordChoice?

    /// Whether this is one program of several, which stays until it is told to leave.
    var stays: Bool { name != nil || identity != nil || !addresses.isEmpty || namesHost }

    /// Whether the transports are told where somebody is.
    private var namesHost: Bool {
        let specs = (try? TransportSpec.list(parsing: transports)) ?? []
        return specs.contains { $0.options["host"] != nil }
    }

    /// The command line.
    static let program = Program(
        Command(
            "greet", "Finds others, greets them, and tells what happens",
            text: """
                Without a name, two sessions in this program find each other, talk, and leave. With one, or with somebody to
                meet, it is one program of several: start it in two terminals, or on two machines, under two names. It greets
                everybody it finds and tells what happens, until Ctrl-C.
                """,
            Option(
                "name", .displayName,
                "what others see it as; the device's name where another option asks it to stay"),
            Option(
                "transport",
                .transports, default: "tcp",
                "what carries it; with options as in tcp:port=4000,interface=eth0, or with somebody to meet, as in "
                    + "tcp:host=192.168.1.7,port=4000"),
            Option("service", .serviceName, default: "greet", "whom it greets: those of the same service"),
            Option(
                "identity", .identityFile, default: nil,
                "the file that makes it the same peer at every start; or ephemeral, a new one"),
            Option(
                repeated: "connect", .transportAddress,
                "whom to call without looking for anybody, as in tcp://192.168.1.7:4000"),
            RecordChoice.options,
            examples: [
                Example("", "two in one program, that meet and leave"),
                Example("--name Puma", "one of several, that finds the others by itself"),
                Example("--name Lynx --connect tcp://192.168.1.7:4000", "one that knows where somebody is"),
            ]
        ) { name, transports, service, identity, addresses, record in
            let options = Options(
                name: name, transports: transports, service: service, identity: identity,
                addresses: addresses, record: record)
            if record != nil, !options.stays {
                throw Misuse("--record is for one of several: give it a --name, too")
            }
            return options
        },
        sections: [
            Section(
                "Exit status",
                "0 when all went well, 1 when something could not be done, 2 when the call was wrong, 3 when the system "
                    + "has too few descriptors or threads for it.")
        ])

    /// Makes the transports. Fails where they are misspelt, or of no use for what else was asked.
    func makeTransports() throws(Misuse) -> [any Transport] {
        do throws(Misuse) {
            return try makeFittingTransports()
        } catch {
            throw error.pointing(to: "greet --help")
        }
    }

    private func makeFittingTransports() throws(Misuse) -> [any Transport] {
        let made = try TransportRegistry.standard.makeAll(forOption: transports)
        let schemes = made.map(\.scheme)
        if let address = addresses.first(where: { !schemes.contains($0.scheme) }) {
            throw Misuse("--connect \(address) needs the transport \(address.scheme), not \(transports)")
        }
        if stays, schemes == ["memory"] {
            throw Misuse(
                "memory reaches nobody outside this program: name another transport, or nothing else")
        }
        return made
    }
}
