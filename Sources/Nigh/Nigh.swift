// The module most programs import: the session layer and every transport this package ships.

@_exported import NighCore
@_exported import NighMemory
