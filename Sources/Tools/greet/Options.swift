import Nigh

/// What `greet` was asked to do.
struct Options {
    /// Nil where nobody chose one.
    var name: DisplayName?
    var service: ServiceName = "greet"
    /// As `TransportRegistry.makeAll` reads it.
    var transports = "tcp"
    /// Nil for a new one each time.
    var identity: IdentityFile?
    var addresses: [TransportAddress] = []
    var wantsHelp = false

    /// Whether this is one program of several, which stays until it is told to leave.
    var stays: Bool { name != nil || identity != nil || !addresses.isEmpty || namesHost }

    /// Whether the transports are told where somebody is.
    private var namesHost: Bool {
        let specs = (try? TransportSpec.list(parsing: transports)) ?? []
        return specs.contains { $0.options["host"] != nil }
    }

    static let help = """
        usage: greet [--name NAME] [--transport LIST] [--service NAME] [--identity FILE|ephemeral]
                     [--connect ADDRESS]

        Without a name, two sessions in this program find each other, talk, and leave. With one, or with somebody to
        meet, it is one program of several: start it in two terminals, or on two machines, under two names. It greets
        everybody it finds and tells what happens, until Ctrl-C.

          --name NAME         what others see it as; the device's name where another option asks it to stay
          --transport LIST    what carries it (default tcp); with options as in tcp:port=4000,interface=eth0, or
                              with somebody to meet, as in tcp:host=192.168.1.7,port=4000
          --service NAME      whom it greets: those of the same service (default greet)
          --identity FILE     the file that makes it the same peer at every start; or ephemeral (the default), a new one
          --connect ADDRESS   whom to call without looking for anybody, as in tcp://192.168.1.7:4000; may be given often

        The exit status is 0 when all went well, 1 when something could not be done, 2 when the call was wrong.
        """

    struct Misuse: Error, Equatable {
        let words: String
    }

    init(_ arguments: [String]) throws(Misuse) {
        var rest = arguments[...]
        while let argument = rest.popFirst() {
            // Both `--name Puma` and `--name=Puma`.
            let halves = argument.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let option = String(halves[0])
            if halves.count == 2, option.hasPrefix("--") { rest = [String(halves[1])] + rest }
            switch option {
            case "--help", "-h": wantsHelp = true
            case "--name": name = try Self.name(Self.value(of: option, &rest))
            case "--service": service = try Self.service(Self.value(of: option, &rest))
            case "--transport": transports = try Self.value(of: option, &rest)
            case "--identity":
                let path = try Self.value(of: option, &rest)
                identity = path == "ephemeral" ? nil : IdentityFile(path: path)
            case "--connect": addresses.append(try Self.address(Self.value(of: option, &rest)))
            default: throw Misuse(words: "unknown argument \"\(argument)\"")
            }
        }
    }

    private static func value(of option: String, _ rest: inout ArraySlice<String>) throws(Misuse) -> String {
        guard let value = rest.popFirst(), !value.isEmpty else {
            throw Misuse(words: "\(option) needs a value")
        }
        return value
    }

    private static func name(_ text: String) throws(Misuse) -> DisplayName {
        guard let name = DisplayName(exactly: text) else {
            throw Misuse(words: "a name has 1 to 63 bytes and no control characters, unlike \"\(text)\"")
        }
        return name
    }

    private static func service(_ text: String) throws(Misuse) -> ServiceName {
        guard let service = ServiceName(text) else {
            throw Misuse(
                words: "a service is 1 to 15 of a-z, 0-9 and '-', with a letter in it, unlike \"\(text)\"")
        }
        return service
    }

    private static func address(_ text: String) throws(Misuse) -> TransportAddress {
        guard let address = TransportAddress(text) else {
            throw Misuse(words: "an address is written as in tcp://192.168.1.7:4000, unlike \"\(text)\"")
        }
        return address
    }

    /// Makes the transports. Fails where they are misspelt, or of no use for what else was asked.
    func makeTransports() throws(Misuse) -> [any Transport] {
        let made: [any Transport]
        do throws(NighError) {
            made = try TransportRegistry.standard.makeAll(transports)
        } catch {
            throw Misuse(words: "\(error)")
        }
        let schemes = made.map(\.scheme)
        if let address = addresses.first(where: { !schemes.contains($0.scheme) }) {
            throw Misuse(
                words: "--connect \(address) needs the transport \(address.scheme), not \(transports)")
        }
        if stays, schemes == ["memory"] {
            throw Misuse(
                words: "memory reaches nobody outside this program: name another transport, or nothing else")
        }
        return made
    }
}
