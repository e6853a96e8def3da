/// Checks with the system's own tools that a host of the lab has nothing of this machine, and no way out. That wires,
/// filters and daemons do what they are told is seen where a scenario fails without it.
enum Ground {
    static let all = [
        Scenario("ground", "the lab itself: nothing of this machine is inside, and nothing leads out") {
            lab in
            let puma = try lab.host("puma")
            let links = try puma.run(["ip", "-brief", "link"])
            let interfaces = links.compactMap { $0.split { $0 == " " || $0 == "@" }.first }
            try lab.check("puma's interfaces are its own", interfaces.sorted() == ["eth0", "lo"])
            let routes = try puma.run(["ip", "route"]) + puma.run(["ip", "-6", "route"])
            try lab.check("it has no default route", !routes.contains { $0.hasPrefix("default") })
            try lab.check("puma is called puma", try puma.run(["uname", "-n"]) == ["puma"])
        }
    ]
}
