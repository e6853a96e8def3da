import Glibc

/// A conversation between a peer that has TCP only and one that has Bluetooth only.
enum MachineCarriers {
    /// Nobody else is on the machine.
    private static let port = 4_711

    static let all = [
        Scenario(
            "carried-from-tcp",
            "a peer with TCP only and one with Bluetooth only talk through one that has both, until it dies",
            limit: .seconds(150)
        ) { lab throws(Failure) in
            let middle = try lab.machine.peer(
                "Ocelot",
                Carriers.options("tcp:interface=lo,mdns=off,port=\(port),\(TransportFlags.radio(0))"))
            let far = try lab.machine.peer("Lynx", Carriers.options(TransportFlags.radio(1)))
            try lab.meet(middle, far, findingWithin: .seconds(40))
            let near = try lab.machine.peer("Puma", Carriers.options("tcp:interface=lo,mdns=off"))
            near.sendCommand("call tcp://127.0.0.1:\(port)")
            try lab.wait(for: "both ends to be connected through the middle", within: .seconds(40)) {
                near.isCarried(to: far) && far.isCarried(to: near)
            }
            try lab.check(
                "the two hops are TCP and Bluetooth",
                near.view(of: middle).transports == ["tcp"]
                    && far.view(of: middle).transports == ["bluetooth"])
            try lab.exchangeMessages(near, far)
            middle.signal(SIGKILL)
            try lab.wait(for: "both to be told that the conversation is over", within: .seconds(60)) {
                !Lifelines.isUnbroken(near, far) && !Lifelines.isUnbroken(far, near)
            }
        }
    ]
}
