import NighCore

/// The lines of `TCPTransport.diagnose`: the present state of the network and the listener.
enum TCPDiagnosis {
    private static let interfaces = "interfaces"

    /// Returns the line for the one interface that was asked for, when it is missing.
    static func interface(_ name: String, isMissing error: NighError) -> Diagnosis {
        Diagnosis("interface \(name)", .fail, "\(error.cause)", advice: error.advice, id: interfaces)
    }

    /// Returns the lines for the addresses in use. A person who names the loopback interface means it, so that is no
    /// warning.
    static func addresses(_ own: [NetworkWatch.InterfaceAddress], isInterfaceNamed: Bool) -> [Diagnosis] {
        let names = own.map { "\($0.address.hostDescription) (\($0.interface))" }
        let others = own.filter { !$0.isLoopback }
        let isAlone = others.isEmpty && (own.isEmpty || !isInterfaceNamed)
        let line = Diagnosis(
            "addresses", own.isEmpty ? .fail : isAlone ? .warn : .pass,
            names.isEmpty ? "none" : names.joined(separator: ", "),
            advice: isAlone ? "connect this machine to a network, so that others can reach it" : nil,
            id: interfaces)
        return others.isEmpty ? [line] : [line, versions(of: others)]
    }

    /// Returns the line for the IP versions. A device with only one version of IP meets only devices that have the same
    /// one.
    private static func versions(of own: [NetworkWatch.InterfaceAddress]) -> Diagnosis {
        let (id, subject) = ("ip-versions", "IP versions")
        let hasIPv6 = own.contains(where: \.address.isIPv6)
        guard own.contains(where: { !$0.address.isIPv6 }) else {
            return Diagnosis(
                subject, .warn, "IPv6 only: devices that have only IPv4 are not found and not reached",
                advice:
                    "see why no IPv4 address was given out: is there a DHCP server, and is IPv4 switched on in "
                    + "the network's settings?",
                id: id)
        }
        let finding = hasIPv6 ? "IPv4 and IPv6" : "IPv4 only, which nearly all devices have"
        return Diagnosis(subject, .pass, finding, id: id)
    }

    /// Returns the line for the listener: whether it listens, and why not.
    static func listening(on port: UInt16?, _ error: NighError?) -> Diagnosis {
        let (id, subject) = ("port", "listening")
        if let error { return Diagnosis(subject, .fail, "\(error.cause)", advice: error.advice, id: id) }
        return Diagnosis(subject, .pass, port.map { "on port \($0)" } ?? "not requested", id: id)
    }
}
