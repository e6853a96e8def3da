import Glibc

/// Checks with the system's own tools what all other scenarios rely on, so that a failure elsewhere is known not to be
/// the lab's.
enum Ground {
    static let all = [
        Scenario("ground", "the lab itself: hosts, wires, daemons, filters, and no way out") {
            lab throws(Failure) in
            let puma = try lab.host("puma", daemon: true)
            let lynx = try lab.host("lynx", daemon: true)
            lab.step("nothing of this machine is inside, and nothing leads out")
            try lab.check("puma's interfaces are its own", interfaces(of: puma) == ["eth0", "lo"])
            for host in [puma, lynx] {
                let routes = try host.run(["ip", "route"]) + host.run(["ip", "-6", "route"])
                try lab.check(
                    "\(host.name) has no default route", !routes.contains { $0.hasPrefix("default") })
            }
            try lab.check("puma is called puma", puma.run(["uname", "-n"]) == ["puma"])
            lab.step("a record published on one host is seen on the other")
            let first = try publish("First", on: puma)
            try lynx.browse("_ground._tcp", until: "First, with puma's address") {
                $0.contains(";First;_ground._tcp;local;puma.local;10.77.0.1;")
            }
            first.signal(SIGTERM)
            try lab.wait(for: "the publisher to have ended") { first.isOver }
            lab.step("a plug that is pulled")
            try puma.setLink(isUp: false)
            try lab.check("puma has no carrier", carrier(of: puma) == "0")
            try puma.setLink(isUp: true)
            try lab.check("puma has a carrier", carrier(of: puma) == "1")
            lab.step("multicast that is dropped")
            try puma.dropMulticast()
            _ = try publish("Second", on: puma)
            try puma.browse("_ground._tcp", until: "Second") { $0.contains(";Second;_ground._tcp;") }
            try lab.check("lynx does not", !finds("Second", lynx))
            lab.step("a host that is cut off silently")
            let ocelot = try lab.host("ocelot", daemon: true)
            try ocelot.setSilent(true)
            _ = try publish("Third", on: ocelot)
            try lab.check("ocelot has a carrier", carrier(of: ocelot) == "1")
            try lab.check("lynx sees nothing of it", !finds("Third", lynx))
        }
    ]

    private static func interfaces(of host: Host) throws(Failure) -> [String] {
        try host.run(["ip", "-brief", "link"]).compactMap { line in
            line.split { $0 == " " || $0 == "@" }.first.map(String.init)
        }.sorted()
    }

    private static func carrier(of host: Host) throws(Failure) -> String {
        try host.run(["cat", "/sys/class/net/eth0/carrier"]).joined()
    }

    /// Publishes a record with Avahi's tool. Returns once it is established.
    private static func publish(_ name: String, on host: Host) throws(Failure) -> Child {
        let child = try host.start(
            ["avahi-publish", "-s", name, "_ground._tcp", "4711", "v=1"], mayEnd: true)
        var isEstablished = false
        child.onLine = { _, line in if line.contains("Established") { isEstablished = true } }
        try host.lab.wait(for: "\(name) to be published") { isEstablished }
        return child
    }

    /// Whether Avahi's browser finds a record called `name` among all that there are for now. It does not resolve them:
    /// it would run on for ever if one of them went while it was being resolved.
    private static func finds(_ name: String, _ host: Host) throws(Failure) -> Bool {
        try host.run(["avahi-browse", "-pt", "_ground._tcp"]).contains {
            $0.contains(";\(name);_ground._tcp;")
        }
    }
}
