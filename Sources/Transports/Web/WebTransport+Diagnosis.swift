import NighCore

extension WebTransport {
    /// Returns the diagnosis, in the order in which things can break: the addresses, the port, the name.
    func diagnose(_ running: Running) -> [Diagnosis] {
        let hosts = usableHosts
        guard let listener = running.listening.listener else {
            let error = running.listening.error
            return [
                Diagnosis(
                    "addresses", hosts.isEmpty ? .fail : .pass,
                    "\(hosts.count) of this machine on local networks"),
                Diagnosis(
                    "port", error == nil ? .warn : .fail, error.map { "\($0.cause)" } ?? "does not listen",
                    advice: error?.advice),
            ]
        }
        let others = listener.addresses.filter { !$0.isLoopback }
        let shown = (others.isEmpty ? listener.addresses : others).map(\.hostDescription)
        return [
            Diagnosis(
                "addresses", others.isEmpty ? .warn : .pass, shown.joined(separator: ", "),
                advice: others.isEmpty
                    ? "this machine is on no local network, so only its own browsers reach the page" : nil),
            Diagnosis("port", .pass, "listens on TCP port \(listener.port)"),
            nameDiagnosis(running),
        ] + guestDiagnosis
    }

    private func nameDiagnosis(_ running: Running) -> Diagnosis {
        guard let name = running.discovery.hostName else {
            return Diagnosis(
                "name", .warn, "not on the network yet",
                advice: "phones use one of the addresses with numbers",
                isPending: running.discovery.diagnose().contains(where: \.isPending))
        }
        return Diagnosis("name", .pass, name)
    }

    /// Browsers that were turned away, and guests.
    private var guestDiagnosis: [Diagnosis] {
        let guests = guests
        let here = guests.count(where: \.isHere)
        var lines = [Diagnosis("guests", .pass, "\(here) here, \(guests.count - here) away")]
        if refusedCount > 0 {
            lines.append(
                Diagnosis(
                    "connections", .warn, "\(refusedCount) refused because there were too many",
                    advice: "does somebody open connections without end?"))
        }
        return lines
    }
}
