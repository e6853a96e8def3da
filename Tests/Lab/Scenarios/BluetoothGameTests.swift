import Testing

/// Plays one game over RFCOMM. It is the proof that runs for each change; `make test-bluetooth` has all others.
@Suite struct BluetoothGameTests {
    /// The scenario with the game.
    static let scenario = "game"

    @Test func twoPeoplePlayOverBluetooth() async throws {
        try await BluetoothTests.Load(kind: "scenarios", names: [Self.scenario]).run()
    }
}
