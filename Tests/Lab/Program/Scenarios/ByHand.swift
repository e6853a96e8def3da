/// Addresses that a person types.
enum ByHand {
    static let all = [
        Scenario("by-hand", "addresses given by hand, right ones and wrong ones, without any discovery") {
            lab throws(Failure) in try byHand(lab)
        }
    ]

    private static func byHand(_ lab: Lab) throws(Failure) {
        let puma = try lab.host("puma").peer("Puma", .over("tcp:mdns=off,port=4000"))
        let lynxHost = try lab.host("lynx")
        let lynx = try lynxHost.peer("Lynx", .over("tcp:mdns=off"))
        try lab.wait(for: "both to listen") { !puma.listening.isEmpty && !lynx.listening.isEmpty }
        let right = [
            "\(puma.host.address()):4000", "[\(try linkLocal(of: puma.host))%eth0]:4000",
        ]
        for address in right {
            lynx.sendCommand("call tcp://\(address)")
            try lab.connection(of: puma, lynx)
            try lab.exchangeMessages(puma, lynx)
            lynx.leave(puma)
            try lab.wait(for: "them to part") { !puma.isConnected(to: lynx) && !lynx.isConnected(to: puma) }
        }
        try lab.check("neither was found", !puma.finds(lynx) && !lynx.finds(puma))
        try puma.host.filter(in: "tcp dport 4002 drop")
        let wrong = [
            ("\(puma.host.address()):4002", "no answer in time"),
            ("\(puma.host.address()):4001", "nobody listens there"),
            // Without a route, the kernel refuses at once. On its own network, it asks for the address without an
            // answer.
            ("10.99.0.1:4000", "cannot be reached"), ("10.77.0.200:4000", "cannot be reached"),
            ("\(lynxHost.address()):\(try lynx.port())", "back to this session"),
        ]
        for (address, reason) in wrong {
            let before = lynx.failures.count
            lynx.sendCommand("call tcp://\(address)")
            try lab.wait(for: "the call to \(address) to fail", within: .seconds(15)) {
                lynx.failures.count > before
            }
            try lab.check(
                "it says that it is \"\(reason)\"", lynx.failures.last?.contains(reason) ?? false)
        }
    }

    /// The IPv6 link-local address of a host's first interface.
    private static func linkLocal(of host: Host) throws(Failure) -> String {
        let lines = try host.run(["ip", "-6", "-brief", "addr", "show", "dev", "eth0", "scope", "link"])
        for word in lines.flatMap({ $0.split(separator: " ") }) where word.hasPrefix("fe80:") {
            return String(word.prefix { $0 != "/" })
        }
        throw Failure("\(host.name) has no link-local address")
    }
}
