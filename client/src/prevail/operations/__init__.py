"""Operations of the service, each written once for both clients."""
