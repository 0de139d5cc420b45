package calamp
