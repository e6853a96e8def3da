// The module that most programs import: the session layer and every transport of this package.

@_exported import NighBluetooth
@_exported import NighCore
@_exported import NighMemory
@_exported import NighPlugins
@_exported import NighTCP
@_exported import NighUV

extension TransportRegistry {
    /// Every transport of this package, for programs that let a person choose by a flag: `try
    /// TransportRegistry.standard.makeAll("tcp")`. A program adds its own transports with `register`.
    public static let standard = TransportRegistry([
        MemoryTransport.registryEntry, TCPTransport.registryEntry, BluetoothTransport.registryEntry,
    ])
}
