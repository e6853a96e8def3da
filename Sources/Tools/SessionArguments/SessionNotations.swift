import Arguments
import NighLoop

/// The syntax of names, addresses, identities and transports on the command lines of the programs here.
extension Notation where Value == DisplayName {
    /// A display name, as others see it.
    public static var displayName: Notation {
        Notation("NAME") { text in
            guard let name = DisplayName(exactly: text) else {
                throw UsageError("a name has 1 to 63 bytes, no control characters, and something to see")
            }
            return name
        }
    }
}

extension Notation where Value == ServiceName {
    /// The name of a service that is offered and looked for.
    public static var serviceName: Notation {
        Notation("NAME") { text in
            guard let service = ServiceName(text) else {
                throw UsageError(
                    "\"\(text)\" is not a service name: 1 to 15 of a-z, 0-9 and '-', at least one of them a letter"
                )
            }
            return service
        }
    }
}

extension Notation where Value == TransportAddress {
    /// An address at which a peer can be reached.
    public static var transportAddress: Notation {
        Notation("ADDRESS") { text in
            guard let address = try TransportAddress.typed(text) else {
                throw TransportAddress.noAddress(text)
            }
            return address
        }
    }
}

extension Notation where Value == IdentityFile? {
    private static var ephemeral: String { "ephemeral" }

    /// The identity file that makes a program the same peer at every start, or nil for "ephemeral", a new identity each
    /// time.
    public static var identityFile: Notation {
        Notation("FILE|ephemeral", candidates: .files, write: { $0?.path ?? ephemeral }) { text in
            text == ephemeral ? nil : IdentityFile(path: text)
        }
    }
}

extension Notation where Value == String {
    /// Transports with their options, as the registry parses them.
    public static var transports: Notation {
        .text("LIST", candidates: .words(TransportRegistry.standard.entries.map(\.scheme)))
    }
}
