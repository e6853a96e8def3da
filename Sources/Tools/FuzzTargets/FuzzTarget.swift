/// A part of Nigh that takes bytes from strangers, or values that were made from such bytes.
package enum FuzzTarget: String, CaseIterable, Sendable {
    case actors, addresses, advertisements, calls, cbor, channels, codes, decoder, directory, dns, files,
        forwarding
    case groups, guests, http, introductions, link, neighbours, packets, pairing, paths, records, sequenced,
        serial
    case services, session, table, tls, trust, websocket
    case codeMessages = "code-messages"

    /// Runs one input. Throws a ``Finding`` if a promise is broken.
    package func run(_ bytes: [UInt8]) throws {
        var input = Input(bytes)
        switch self {
        case .actors: try ActorsTarget.run(&input)
        case .addresses: try Decoders.addresses(&input)
        case .advertisements: try Decoders.advertisements(&input)
        case .calls: try CallsTarget.run(&input)
        case .cbor: try Decoders.cbor(&input)
        case .channels: try Decoders.channels(&input)
        case .codeMessages: try Decoders.codeMessages(&input)
        case .codes: try Security.codes(&input)
        case .decoder: try Links.decoder(&input)
        case .directory: try DirectoryTarget.run(&input)
        case .dns: try Discovery.dns(&input)
        case .files: try Files.run(&input)
        case .forwarding: try Decoders.forwarding(&input)
        case .groups: try GroupsTarget.run(&input)
        case .guests: try Security.guests(&input)
        case .http: try Texts.http(&input)
        case .introductions: try IntroductionsTarget.run(&input)
        case .link: try Links.link(&input)
        case .neighbours: try NeighboursTarget.run(&input)
        case .packets: try Decoders.packets(&input)
        case .pairing: try Security.pairing(&input)
        case .paths: try HostileNetwork.run(&input)
        case .records: try Links.records(&input)
        case .sequenced: try SequencedTarget.run(&input)
        case .serial: try Discovery.serial(&input)
        case .services: try Discovery.services(&input)
        case .session: try SessionTarget.run(&input)
        case .table: try TableTarget.run(&input)
        case .tls: try Security.tls(&input)
        case .trust: try Texts.trust(&input)
        case .websocket: try Texts.webSocket(&input)
        }
    }
}
