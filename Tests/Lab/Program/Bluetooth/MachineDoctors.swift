/// Runs `nigh doctor` in a machine whose Bluetooth is broken in all possible ways.
enum MachineDoctors {
    static let all = [
        Scenario(
            "doctor", "each requirement of Bluetooth is removed in turn: the doctor names it",
            limit: .seconds(120)
        ) { lab throws(Failure) in
            let well = try lab.machine.doctor(["-t", adapter])
            try lab.check("all is well", well.failed.isEmpty && well.status == 0)
            for id in ["dbus", "bluetoothd", "permission", "adapter", "unblocked", "powered", "discoverable"]
            {
                try lab.check("\(id) passes", well.finding("bluetooth.\(id)", "pass") != nil)
            }
            for broken in table { try broken.check(in: lab) }
            // Later scenarios find everything as it was.
            for command in ["dbus-daemon start", "bluetoothd start", "btvirt start"] {
                try lab.machine.run(["sh", "-c", "daemon \(command)"])
            }
        }
    ]

    private static let adapter = "bluetooth:adapter=hci0"

    /// The order matters: each leaves what the next one needs.
    private static let table = [
        BrokenSetUp(
            "not discoverable", ["-t", "\(adapter),discoverable=no"],
            says: [
                .init(
                    verdict: "warn", id: "bluetooth.discoverable",
                    cause: "devices that are not paired do not find this one",
                    cure: "`bluetoothctl discoverable on`")
            ], status: 0
        ) { lab throws(Failure) in
            try lab.machine.run(["adapter", "hci0", "discoverable", "off"])
            return lab.machine
        },
        BrokenSetUp(
            "adapter off", ["-t", adapter],
            says: [
                .init(
                    verdict: "fail", id: "bluetooth.powered", cause: "the adapter hci0 is powered off",
                    cure: "`bluetoothctl power on`")
            ], status: 3
        ) { lab throws(Failure) in
            try lab.machine.run(["adapter", "hci0", "power", "off"])
            return lab.machine
        },
        BrokenSetUp(
            "no adapter", ["-t", "bluetooth"],
            says: [
                .init(
                    verdict: "fail", id: "bluetooth.adapter", cause: "there is no Bluetooth adapter",
                    cure: "plug one in")
            ], status: 3
        ) { lab throws(Failure) in
            try lab.machine.run(["daemon", "btvirt", "kill"])
            return lab.machine
        },
        BrokenSetUp(
            "bluetoothd down", ["-t", adapter],
            says: [
                .init(
                    verdict: "fail", id: "bluetooth.bluetoothd", cause: "bluetoothd is not running",
                    cure: "`systemctl start bluetooth`")
            ], status: 3
        ) { lab throws(Failure) in
            try lab.machine.run(["daemon", "bluetoothd", "kill"])
            return lab.machine
        },
        BrokenSetUp(
            "no dbus", ["-t", "\(adapter),tcp:interface=lo,mdns=embedded"],
            says: [
                .init(
                    verdict: "fail", id: "bluetooth.dbus", cause: "no D-Bus system bus",
                    cure: "`systemctl start dbus`")
            ], status: 1
        ) { lab throws(Failure) in
            try lab.machine.run(["daemon", "dbus-daemon", "kill"])
            return lab.machine
        },
    ]
}
